"""Make the reference page of the command line from the program itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main

from stiefelsync.cli import app

__all__ = ["write_command_line"]

HEAD = """\
# Command line

Every verb takes `--help`. Progress and messages go to standard error, results to standard output; `--json` prints one
JSON document instead, and `--quiet` prints nothing. Give `-` as the input to read
standard input, for formats that are one file.
Exit codes: 0 success, 1 something was found (see the verb), 2 bad input, 130 interrupted.

`stiefelsync --install-completion` sets up completion for your shell (bash, zsh, fish, PowerShell): of verbs, options,
methods and formats. `--show-completion` prints what it would install.
"""


def write_command_line(path: Path) -> None:
    """Write the page, only if it changed, so that Sphinx need not read it again."""
    group: Any = typer.main.get_command(app)
    text = "\n".join([HEAD, *(_verb(name, verb) for name, verb in group.commands.items())])
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _verb(name: str, verb: Any) -> str:
    """Return the section of one verb."""
    prose, examples = [], []
    for line in (verb.help or "").splitlines():
        (examples if line.startswith("Example: ") else prose).append(line.removeprefix("Example: "))
    parts = [f"## {name}", "\n".join(prose).strip()]
    if examples:
        parts.append("```sh\n" + "\n".join(examples) + "\n```")
    rows = [_row(parameter) for parameter in verb.params if parameter.name != "help"]
    parts.append("\n".join(["| argument or option | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _row(parameter: Any) -> str:
    """Return the line of one argument or option."""
    options = parameter.opts + parameter.secondary_opts
    is_argument = not options[0].startswith("-")
    names = f"`{parameter.name.upper()}`" if is_argument else ", ".join(f"`{option}`" for option in options)
    text = (getattr(parameter, "help", None) or "").replace("|", "\\|").strip()
    default = parameter.default
    if default not in (None, False, [], ()) and not callable(default) and not parameter.required:
        text += f" Default: `{default}`."
    return f"| {names} | {text} |"
