"""How usage is shown and misuse answered: the words of this program in place of those of the one that parses."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["UsageError", "Verb", "explain", "forget_types", "plain_pieces"]

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
