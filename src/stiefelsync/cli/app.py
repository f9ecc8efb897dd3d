"""The program ``stiefelsync``: its verbs, and the one place where errors become exit codes."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from stiefelsync._start import version as about_the_program
from stiefelsync.cli import compare, convert, demo, inspect, judge, merge, methods, report, reproduce, sync, synth
from stiefelsync.cli.terminal import complain, print_anything
from stiefelsync.cli.usage import UsageError, Verb, explain, forget_types, in_flags
from stiefelsync.errors import StiefelSyncError

__all__ = ["app", "main"]

# To add a verb: write a module beside this one with a function `run` and a docstring, and name it
# here.
VERBS = (demo, inspect, sync, judge, merge, convert, compare, report, synth, reproduce, methods)

BAD_INPUT, INTERRUPTED, NO_READER = 2, 130, 141
# Windows has no SIGHUP.
_ENDINGS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _advice(error: StiefelSyncError, ctx: typer.Context) -> str:
    """Return the message of an error of the library.

    The setting that it advises on is called as it is called here.
    """
    setting, message = getattr(error, "setting", None), str(error)
    parameters = ctx.command.get_command(ctx, ctx.invoked_subcommand).params  # type: ignore[attr-defined]
    if setting is None or {setting, "option"}.isdisjoint(parameter.name for parameter in parameters):
        return message
    told = in_flags(message, parameters, setting)
    return told if told != message else f"{told} ({in_flags(f'{setting}=', parameters, setting)})"


class Verbs(TyperGroup):
    """Turns what a user can cause into a message and an exit code: 1 a finding, 2 bad input, 130 interrupted."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        forget_types(self.get_params(ctx))
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what comes before the verb."""
        if not args:
            return super().parse_args(ctx, args)  # which shows the help
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            complain("error", explain(error))
            raise typer.Exit(BAD_INPUT) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = lambda message, *_, **__: complain("warning", str(message))
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                # The reader of our output has gone: nothing to complain about, and no one to
                # complain to.
                raise
            except UsageError as error:
                complain("error", explain(error))
            except StiefelSyncError as error:
                complain("error", _advice(error, ctx))
            except OSError as error:
                where = f"{error.filename}: " if error.filename else ""
                complain("error", f"{where}{error.strerror or error}")
            except MemoryError:
                complain("error", "this needs more memory than there is")
            except KeyboardInterrupt:
                complain("interrupted", "the work ended early")
                raise typer.Exit(INTERRUPTED) from None
            raise typer.Exit(BAD_INPUT)


app = typer.Typer(
    name="stiefelsync",
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(about_the_program())
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Tell version, kernels and processor, and stop."
        ),
    ] = False,
) -> None:
    """Make pairwise matches among many images, shapes or sessions consistent.

    Give it matches, get one labelling: every point gets a place in a common universe. Input files
    are never changed. Exit codes: 0 fine, 1 something was found (see the verb), 2 bad input.
    """


for _verb in VERBS:
    app.command(_verb.__name__.rpartition(".")[2], cls=Verb)(_verb.run)


def _end(number: int, _: object) -> NoReturn:
    """End the work in such a way that it cleans up after itself.

    A second signal does not interrupt that.
    """
    for other in _ENDINGS:
        signal.signal(other, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def main() -> None:
    """Run the program with the arguments of the process.

    End as SIGPIPE ends others when no one reads its output.
    """
    for number in _ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, _end)
    print_anything()
    try:
        app()
    except (SystemExit, BrokenPipeError) as end:
        if not isinstance(end if isinstance(end, OSError) else end.__context__, BrokenPipeError):
            raise
        # What they still hold is flushed at the end, and would fail again.
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        sys.exit(NO_READER)
