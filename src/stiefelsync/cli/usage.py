"""How usage is shown and misuse answered: the words of this program in place of those of the one that parses."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["UsageError", "Verb", "advice", "explain", "forget_types", "in_flags", "plain_pieces"]

# Older releases of typer take it from click, newer ones have their own.
UsageError: Any = typer.BadParameter.__base__


class Verb(TyperCommand):
    """A verb whose help shows flags without a type and arguments without braces."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        forget_types(self.get_params(ctx))
        super().format_help(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the line that begins with Usage."""
        return plain_pieces(super().collect_usage_pieces(ctx))


def forget_types(parameters: Sequence[Any]) -> None:
    """Let those parameters that take no value say so in the help."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""


def plain_pieces(pieces: Sequence[str]) -> list[str]:
    """Return the words of a line of usage without braces.

    Examples
    --------
    >>> plain_pieces(["[OPTIONS]", "{INPUT}"])
    ['[OPTIONS]', 'INPUT']
    """
    return [piece.replace("{", "").replace("}", "") for piece in pieces]


def explain(error: Any) -> str:
    """Return what was misused, in a sentence that suggests what may have been meant."""
    unknown, ctx = getattr(error, "option_name", None), error.ctx
    if hasattr(error, "possibilities") and unknown is not None and ctx is not None:
        known = [
            name for parameter in ctx.command.get_params(ctx) for name in parameter.opts + parameter.secondary_opts
        ]
        close = difflib.get_close_matches(unknown, [name for name in known if name.startswith("--")], n=1)
        message = f"unknown option {unknown}" + (f"; did you mean {close[0]}?" if close else "")
    else:
        message = " ".join(error.format_message().split()).removesuffix(".")
        message = message[:1].lower() + message[1:]
    where = "" if ctx is None or message.endswith("?") else f" (see {ctx.command_path} --help)"
    return message + where


def advice(sentences: Sequence[str], ctx: Any) -> list[str]:
    """Return what the library advises, which is about cleaning, in the flags of the verb that cleans."""
    return [in_flags(sentence, ctx.parent.command.get_command(ctx.parent, "sync").params) for sentence in sentences]


def in_flags(text: str, parameters: Sequence[Any], setting: str | None = None) -> str:
    """Return a text of the library in which ``name=value`` is called as these parameters call it.

    Parameters
    ----------
    setting
        The only name that is meant; its value may be absent.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> force = SimpleNamespace(name="force", opts=["--force"])
    >>> in_flags("replace it with force=True, or move it with refine=True", [force])
    'replace it with --force, or move it with --option refine=true'
    >>> in_flags("or any with columns=id,id,score", [SimpleNamespace(name="columns", opts=["--columns"])], "columns")
    'or any with --columns id,id,score'
    """
    known = {parameter.name: parameter for parameter in parameters}
    # Of a setting that was named the value may be absent, or stand there without quotation marks.
    name, some = (r"\w+", "") if setting is None else (setting, r"|(\w[\w,.]*\w|\w)")

    def called(at: re.Match[str]) -> str:
        told = at[3] or (None if setting is None else at[4])
        word = told or (at[2] or "").lower()
        if at[1] not in known:
            return f"--option {at[1]}={word or 'VALUE'}"
        flag: str = (known[at[1]].secondary_opts if at[2] == "False" else known[at[1]].opts)[0]
        return f"{flag} {told}" if told else flag

    value = rf"(True\b|False\b|'([^']*)'{some})" + ("" if setting is None else "?")
    return re.sub(rf"\b({name})={value}", called, text)
