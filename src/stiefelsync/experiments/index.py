"""The page that shows each figure with the paper's claims and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from stiefelsync.experiments.catalogue import EXPERIMENTS
from stiefelsync.experiments.experiment import AVERAGE, FAILS, HOLDS, Experiment, Settings, Verdict

__all__ = ["Section", "command", "page"]


@dataclass(frozen=True)
class Section:
    """One experiment on the page.

    Attributes
    ----------
    instances
        Number of records behind it.
    """

    experiment: Experiment
    verdicts: tuple[Verdict, ...]
    instances: int


def command(name: str, settings: Settings) -> str:
    """Return the command that makes a figure.

    Examples
    --------
    >>> command("house", Settings(quick=True, seeds=3))
    'stiefelsync reproduce house --quick --seeds 3'
    """
    default = Settings()
    words = ["stiefelsync reproduce", name]
    words += ["--quick"] if settings.quick else []
    words += [f"--seeds {settings.seeds}"] if settings.seeds is not None else []
    words += [f"--seed {settings.first_seed}"] if settings.first_seed != default.first_seed else []
    words += [f"--step {settings.step}"] if settings.step != default.step else []
    words += [] if settings.photographs else ["--no-photographs"]
    return " ".join(words)


def page(sections: Sequence[Section], settings: Settings, versions: Mapping[str, str]) -> str:
    """Return the page as HTML; pictures are files beside it."""
    verdicts = [verdict for section in sections for verdict in section.verdicts]
    counts = "".join(
        f"<li>{_badge(finding)} {sum(verdict.finding == finding for verdict in verdicts)}</li>"
        for finding in (HOLDS, AVERAGE, FAILS)
    )
    made = ", ".join(f"{name} {version}" for name, version in versions.items())
    contents = "".join(f'<li><a href="#{s.experiment.name}">{escape(s.experiment.title)}</a></li>' for s in sections)
    # A page may have grown by several commands; all of its sections together are what "all" makes.
    names = [section.experiment.name for section in sections]
    commands = [command(name, settings) for name in (["all"] if set(names) == set(EXPERIMENTS) else names)]
    return _PAGE.format(
        commands=", ".join(f"<code>{escape(each)}</code>" for each in commands),
        counts=counts,
        contents=contents,
        sections="\n".join(_section(section, settings) for section in sections),
        made=escape(made),
        instances=sum(section.instances for section in sections),
    )


def _section(section: Section, settings: Settings) -> str:
    experiment = section.experiment
    figures = "".join(
        f'<a href="{name}.pdf"><img src="{name}.png" alt="{escape(experiment.title)}: {name}"></a>'
        for name in experiment.figures
    )
    rows = "".join(
        f"<tr><td>{escape(v.claim)}</td><td>{_badge(v.finding)}</td><td>{escape(v.evidence)}</td></tr>"
        for v in section.verdicts
    )
    return (
        f'<section id="{experiment.name}"><h2>{escape(experiment.title)}</h2><figure>{figures}'
        f"<figcaption>{escape(experiment.caption)} {section.instances} instances.</figcaption></figure>"
        f'<div class="wide"><table><thead><tr><th>claim</th><th>finding</th><th>numbers</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        f"<p><code>{escape(command(experiment.name, settings))}</code></p></section>"
    )


_CLASSES = {HOLDS: "holds", AVERAGE: "average", FAILS: "fails"}


def _badge(finding: str) -> str:
    return f'<span class="badge {_CLASSES[finding]}">{finding}</span>'


_PAGE = """<!DOCTYPE html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>stiefelsync: the paper's experiments</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff;
  max-width: 62rem; margin: 0 auto; padding: 1rem; }}
h1 {{ font-size: 1.6rem; margin-bottom: .3rem; }}
h2 {{ font-size: 1.2rem; margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem; }}
figure {{ margin: 1rem 0; }}
img {{ max-width: 100%; height: auto; display: block; margin: 0 auto .6rem; }}
figcaption {{ font-size: .9rem; color: #555; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .9rem; width: 100%; }}
th {{ text-align: left; border-bottom: 2px solid #222; padding: .3rem .6rem .3rem 0; }}
td {{ vertical-align: top; border-bottom: 1px solid #ddd; padding: .45rem .6rem .45rem 0; }}
td:first-child {{ min-width: 14rem; }}
code {{ background: #f3f4f6; padding: .15rem .4rem; border-radius: 4px; font-size: .85rem; }}
.badge {{ white-space: nowrap; border-radius: 4px; padding: .1rem .45rem; font-size: .85rem; font-weight: 600; }}
.holds {{ background: #d5f0e6; color: #00513b; }}
.average {{ background: #fdf0cf; color: #6b4700; }}
.fails {{ background: #fbdccb; color: #8a3200; }}
.counts {{ list-style: none; display: flex; flex-wrap: wrap; gap: 1.5rem; padding: 0; }}
</style>
</head>
<body>
<h1>The experiments of the paper, reproduced</h1>
<p>Bernard, Cremers, Thunberg: <em>Sparse Quadratic Optimisation over the Stiefel Manifold with Application to
Permutation Synchronisation</em>, NeurIPS 2021. Each figure stands beside what the paper claims and what came out here:
a claim holds if it is true at every setting (by the mean over seeds), on average if only the mean over settings is.
“Ours” is the paper's method as published.</p>
<ul class="counts">{counts}</ul>
<p>Made by {commands}: {instances} instances, some shared by figures, {made}. Every instance is a line of
<code>records.jsonl</code>.</p>
<ol>{contents}</ol>
{sections}
</body>
</html>
"""
