"""The way from one file to another: who reads, who writes, which option goes to whom; all checked before the work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stiefelsync._border import typed
from stiefelsync.errors import InputError, counted, unknown_name
from stiefelsync.io.base import FORMATS, Format, Written
from stiefelsync.io.dispatch import as_path, load, output_format, reader_of, write
from stiefelsync.io.files import Name, check_outputs
from stiefelsync.matching.matchings import Matchings

__all__ = ["Route", "convert", "plan_route", "share"]

HALF_PIXEL = 0.5
"""From the centre of the first pixel, where some programs count from, to its corner, where COLMAP does."""


@dataclass(frozen=True)
class Route:
    """Where matches come from and where they go.

    Attributes
    ----------
    source, target
        The file to read and the file to write.
    model
        The file that a changed copy is written of, by formats that are written so.
    reader, writer
        The formats of source and target.
    options
        What was given for reading ("read"), for writing ("write"), and for others ("other").
    reads
        Every file that is read, none of which may be written.
    """

    source: Path
    target: Path
    model: Path
    reader: Format
    writer: Format
    options: Mapping[str, Mapping[str, Any]]
    reads: tuple[Path, ...]

    def words(
        self, matchings: Matchings, written: Written | None, images: Path | None
    ) -> tuple[list[str], list[str], str | None]:
        """Return what of the matches the target does not hold, advice on the source, and what to type next."""
        advice, go_on = self.reader.advice, self.writer.next_command
        return (
            self.writer.lost(matchings, self.target, self.options["write"]),
            [] if advice is None else advice(self.source, {**self.options["read"], **self.options["write"]}),
            None if go_on is None else go_on(self.target, written, images),
        )


def plan_route(
    source: Name,
    target: Name,
    *,
    format: str | None = None,
    to: str | None = None,
    like: Name | None = None,
    options: Mapping[str, Any],
    others: Iterable[str] = (),
    outputs: Iterable[Name | None] = (),
    reads: Iterable[Name | None] = (),
    force: bool = False,
    answer: bool = False,
) -> Route:
    """Find the formats, give every option to all that take one of its name, and check all of it.

    Parameters
    ----------
    like
        The file to write a changed copy of; the source by default.
    others
        Names of options that neither format takes but somebody else does.
    outputs, reads
        Further files to be written together with the target, and further files that are read.
    answer
        Whether an answer to the source is written, and not the source itself.

    Raises
    ------
    InputError
        If an option is unknown or wrong, an output is an input, is there already (unless `force`) or cannot be written.
    """
    written = [as_path(target), *(as_path(path) for path in outputs if path is not None)]
    inputs = [as_path(source), *(as_path(path) for path in (like, *reads) if path is not None)]
    check_outputs(written, reads=inputs, force=force)
    model = inputs[0 if like is None else 1]
    reader = reader_of(inputs[0], format, options)
    writer = output_format(written[0], to, model, answer=answer)
    if like is not None and not (writer.copies and writer.sniff(model)):
        why = f"{model} is not such a file" if writer.copies else "it is not written as a changed copy of a file"
        raise InputError(f"the output is of the format {writer.name!r}: {why}; leave like= out", setting="like")
    options = _spelled_out(options, reader, inputs[0])
    given = share(options, read=reader.read_options, write=writer.write_options, other=others)
    if "shift" in writer.write_options and not writer.sniff(model) and reader.half_pixel(inputs[0]):
        given["write"].setdefault("shift", HALF_PIXEL)
    files = [*reader.check("read", given["read"]), *writer.check("write", given["write"])]
    if files:
        check_outputs(written, reads=files, force=force)
    return Route(inputs[0], written[0], model, reader, writer, given, (*inputs, *files))


def _spelled_out(options: Mapping[str, Any], reader: Format, source: Path) -> dict[str, Any]:
    """Return options with those that stand for several others replaced by these; what is given by name comes first."""
    plain, meant = dict(options), dict[str, Any]()
    for known in FORMATS.values():
        for name, recipe in known.recipes.items():
            if not plain.pop(name, False):
                continue
            if known is not reader:
                raise InputError(f"{name} is for files of the format {known.name!r}; {source} is {reader.name!r}")
            meant |= recipe()
    return meant | plain


@typed
def convert(
    source: str | Path,
    target: str | Path,
    /,
    *,
    source_format: str | None = None,
    target_format: str | None = None,
    like: str | Path | None = None,
    add: bool | None = None,
    force: bool = False,
    **options: Any,
) -> list[str]:
    """Convert a file and return sentences on what of it the target does not hold.

    `like` is the file to write a changed copy of, where the format needs one (COLMAP): the source by default. Matches
    that this one does not have are left out, and counted, unless `add` is true. With `force` a target that is there
    already is replaced. Options of the formats go to whichever knows them.

    Examples
    --------
    >>> import tempfile
    >>> from stiefelsync import Matchings
    >>> problem = Matchings.from_labels([0, 0], [1, 1], coordinates=[[1, 2], [3, 4]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(problem, Path(folder, "a.npz"))
    ...     convert(Path(folder, "a.npz"), Path(folder, "a.csv"))
    ['A CSV file of matches holds no point coordinates.']
    """
    route = plan_route(source, target, format=source_format, to=target_format, like=like, options=options, force=force)
    matchings, _ = load(route.source, route.reader, **route.options["read"])
    lost = route.writer.lost(matchings, route.target, route.options["write"])
    given, model = route.options["write"], route.model
    written = write(matchings, route.target, route.writer.name, like=model, add=add, force=force, **given)
    dropped = 0 if matchings.repair is None else matchings.repair.dropped
    if written is not None and route.source == model and written.source == written.target:
        dropped = written.before - written.kept  # less, where a match of merged points stays as it was
    if dropped:
        lost.insert(0, f"{counted(dropped, 'match')} of {source} left out to make it one-to-one.")
    if written is not None and written.to_verify:
        lost.append(f"The verified matches of {counted(written.to_verify, 'pair')} are to be computed again.")
    if written is not None and (absent := matchings.n_matches - written.distinct - written.added):
        where = f"the table {written.target} of {model}" if written.target else model
        other = ", or choose another table with target=" if written.target else ""
        advice = f"write them too with add=True{other}"
        lost.append(f"{absent:,} matches that {where} does not have were left out; {advice}.")
    return lost


def share(options: Mapping[str, Any], **takers: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Give every option to all that take one of that name, or raise :class:`InputError` if nobody does.

    Examples
    --------
    >>> share({"p": 4, "merge_px": 2.5}, method=["p"], reader=["source", "merge_px"])
    {'method': {'p': 4}, 'reader': {'merge_px': 2.5}}
    """
    known = {taker: set(names) for taker, names in takers.items()}
    for name in options:
        if not any(name in names for names in known.values()):
            raise unknown_name("option", name, sorted(set().union(*known.values())) or ["none here"])
    return {taker: {name: options[name] for name in options if name in names} for taker, names in known.items()}
