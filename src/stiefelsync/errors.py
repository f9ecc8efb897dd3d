"""Errors and warnings a user can meet, each worded as what is wrong and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = [
    "ConvergenceWarning", "FormatError", "InputError", "MissingExtraError", "StiefelSyncError", "counted",
    "unknown_name", "visible",
]  # fmt: skip


class StiefelSyncError(Exception):
    """Base class of every error this package raises on purpose."""


class InputError(StiefelSyncError, ValueError):
    """An argument or a problem is not what the function can work with.

    Attributes
    ----------
    match
        Number of the match it is about, in the order given; None where it is about something else.
    setting
        Name of the argument or option that the advice is about, so that a program can say how it
        calls it; None where there is none.
    """

    def __init__(self, message: str, match: int | None = None, *, setting: str | None = None) -> None:
        super().__init__(message)
        self.match, self.setting = match, setting


class FormatError(InputError):
    """A file is not in the format it claims, or cannot be read as any known format."""


class MissingExtraError(StiefelSyncError, ImportError):
    """An optional dependency is absent.

    Parameters
    ----------
    feature
        What needs it, as the user would say it.
    package
        The distribution that is missing.
    extra
        The extra of this package that installs it.

    Examples
    --------
    >>> print(MissingExtraError("drawing", "matplotlib", "plot"))
    drawing needs matplotlib, which is not installed; run: pip install "stiefelsync[plot]"
    """

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(f'{feature} needs {package}, which is not installed; run: pip install "stiefelsync[{extra}]"')
        self.feature, self.package, self.extra = feature, package, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        return type(self), (self.feature, self.package, self.extra)


class ConvergenceWarning(UserWarning):
    """An iteration ended before its criterion was met, or its result rests on a weak assumption."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not among the known ones, with the nearest of them suggested.

    Examples
    --------
    >>> print(unknown_name("step", "gradeint", ["gradient", "polar"]))
    unknown step 'gradeint'; did you mean 'gradient'? Known: gradient, polar
    """
    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f"; did you mean {close[0]!r}? Known: " if close else "; known: "
    return InputError(f"unknown {kind} {name!r}{hint}{', '.join(known)}")


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, which takes an s (after "ch" an es) unless there is one of it.

    Examples
    --------
    >>> counted(1, "point"), counted(1200, "match"), counted(0, "object")
    ('1 point', '1,200 matches', '0 objects')
    """
    ending = "" if n == 1 else "es" if noun.endswith("ch") else "s"
    return f"{n:,} {noun}{ending}"


# Control characters (of which a terminal takes some for commands), marks that turn the direction of
# writing, ends of lines and paragraphs, and halves of surrogates.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return a text in which characters that cannot be seen, and that do something instead, stand as escapes.

    All that is shown of a file, on a terminal, in a page or in an advice, goes through here: its
    names are a stranger's.

    Examples
    --------
    >>> print(visible("\x1b[2Ja.jpg\n"))
    \x1b[2Ja.jpg\n
    >>> visible("Zürich · 東京 – ½")
    'Zürich · 東京 – ½'
    """
    return _UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)
