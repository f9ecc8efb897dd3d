"""Records of ``benchmarks.poses``: the table, what holds, and the plot."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pose_databases import DATABASES

__all__ = ["RECOMMENDED", "Cell", "controls", "load", "plot", "table", "verdicts"]

RECOMMENDED = {"jittered": "before"}
"""The recipe that the guides recommend for a database, where it is not `sync`."""
VERIFIED = ("verified", "rewired05", "rewired20", "ratio95")
"""Databases with a geometry of every pair: the program says that their matches can stay for the global mapper."""


@dataclass(frozen=True)
class Cell:
    """One reconstruction."""

    scene: str
    database: str
    recipe: str
    mapper: str
    draw: int


Known = dict[Cell, dict[str, Any]]
Rows = defaultdict[tuple[str, str, str, str], dict[int, dict[str, Any]]]


def load(records: Path) -> Known:
    """Return the figures of all cells that were run."""
    known = {}
    if records.exists():
        for line in records.read_text().splitlines():
            entry = json.loads(line)
            known[Cell(**entry["cell"])] = entry["figures"]
    return known


def _rows(known: Known) -> Rows:
    """Return the figures of every draw by scene, database, mapper and recipe."""
    rows: Rows = defaultdict(dict)
    for cell, figures in known.items():
        rows[cell.scene, cell.database, cell.mapper, cell.recipe][cell.draw] = figures
    return rows


def table(known: Known, recipes: list[str]) -> list[str]:
    """Return the lines of the table: means over the draws, and the spread of AUC@1°."""
    rows = _rows(known)
    lines = [
        "| scene | database | mapper | recipe | draws | AUC@1° | least–most | AUC@3° | AUC@5° | rotation ° | centre % "
        "| images | points in ≥ 3 images | of the original's | precision | recall |",
        "|" + "---|" * 16,
    ]
    for key, found in sorted(rows.items(), key=lambda row: (*row[0][:3], recipes.index(row[0][3]))):
        figures, given = list(found.values()), rows[(*key[:3], "original")]
        mean = {name: float(np.mean([draw[name] for draw in figures])) for name in figures[0]}
        first = [draw["auc1"] for draw in figures]
        both = [draw for draw in found if draw in given]
        points, before = (sum(some[draw]["points3"] for draw in both) for some in (found, given))
        lines.append(
            f"| {' | '.join(key)} | {len(found)} | {mean['auc1']:.3f} | {min(first):.3f}–{max(first):.3f} "
            f"| {mean['auc3']:.3f} | {mean['auc5']:.3f} | {mean['rotation']:.3f} | {100 * mean['centre']:.2f} "
            f"| {mean['images']:.1f} | {mean['points3']:,.0f} | {f'{points / before:.3f}' if before else '–'} "
            f"| {mean['precision']:.3f} | {mean['recall']:.3f} |"
        )
    return lines


def verdicts(known: Known) -> list[str]:
    """Return the lines of a table of the recommended recipe against the original, over the draws of both.

    AUC@1° holds if it is not below the original's by more than the spread (most less least) of the original's draws,
    points if they are .99 of the original's or more. Jittered databases are held against verified ones, less .05. Rows
    whose recipe is not recommended, because the program says that matches can stay as they are, are judged too.
    """
    rows = _rows(known)
    lines = [
        "| scene | database | mapper | recipe | recommended | draws | AUC@1°: original, recipe | difference "
        "| original's spread | AUC@1° holds | points in ≥ 3 images | points hold | precision: original, recipe "
        "| recall |",
        "|" + "---|" * 14,
    ]
    for key in sorted({(*row[:3], RECOMMENDED.get(row[1], "sync")) for row in rows}):
        scene, database, mapper, _ = key
        found = rows[key]
        given = rows[scene, "verified" if database == "jittered" else database, mapper, "original"]
        both = sorted(found.keys() & given.keys())
        if not both:
            continue
        ours, theirs = ([some[draw] for draw in both] for some in (found, given))
        mean, was = (float(np.mean([draw["auc1"] for draw in some])) for some in (ours, theirs))
        all_draws = [draw["auc1"] for draw in given.values()]
        spread = 0.05 if database == "jittered" else max(all_draws) - min(all_draws)
        points, before = (sum(draw["points3"] for draw in some) for some in (ours, theirs))
        share = points / before if before else np.inf
        precision, recall = (float(np.mean([draw[name] for draw in ours])) for name in ("precision", "recall"))
        first = "–" if database == "jittered" else f"{np.mean([d['precision_before'] for d in ours]):.3f}"
        told = "–" if database == "jittered" else f"{share:.3f} | {_holds(share >= 0.99)}"
        advised = "no: leave it" if mapper == "global" and database in VERIFIED else "yes"
        lines.append(
            f"| {' | '.join(key)} | {advised} | {len(both)} | {was:.4f}, {mean:.4f} | {mean - was:+.4f} | {spread:.4f} "
            f"| {_holds(mean >= was - spread)} | {told if told != '–' else '– | –'} | {first}, {precision:.3f} "
            f"| {recall:.3f} |"
        )
    return lines


def controls(known: Known) -> list[str]:
    """Return the lines of a table of what cleaning and its controls do to AUC@1° of verified matches, global mapper.

    The draws leave out d of n matches. By the delete-d jackknife their variance times (n - d) / d, here 99, is that of
    AUC@1° itself, were the matches others of the same kind.
    """
    rows, shown = _rows(known), ("sync", "told", "at random")
    lines = [
        f"| scene | database | original | spread | its own error | {' | '.join(shown)} |",
        "|" + "---|" * (5 + len(shown)),
    ]
    for scene, database, mapper, recipe in sorted(rows):
        if mapper != "global" or database not in VERIFIED or recipe != "told":
            continue
        given = rows[scene, database, mapper, "original"]
        values = [draw["auc1"] for draw in given.values()]
        told = [f"{np.mean(values):.4f}", f"{max(values) - min(values):.4f}", f"{99**0.5 * np.std(values, ddof=1):.4f}"]
        for name in shown:
            found = rows.get((scene, database, mapper, name), {})
            differences = [found[draw]["auc1"] - given[draw]["auc1"] for draw in found.keys() & given.keys()]
            told.append(f"{np.mean(differences):+.4f}" if differences else "–")
        lines.append(f"| {scene} | {database} | {' | '.join(told)} |")
    return lines


def _holds(it: bool) -> str:
    return "yes" if it else "**no**"


def plot(known: Known, path: Path) -> None:
    """Draw AUC@1° of every database before and after, a panel for each scene and mapper."""
    import matplotlib.pyplot as plt

    panels = sorted({(cell.scene, cell.mapper) for cell in known})
    databases = [name for name in DATABASES if any(cell.database == name for cell in known)]
    figure, axes = plt.subplots(1, len(panels), figsize=(3.4 * len(panels), 3.4), sharey=True, squeeze=False)
    shown = {
        "original": ("o", "tab:grey"),
        "at random": ("x", "tab:red"),
        "sync": ("s", "tab:blue"),
        "unrefined": ("D", "tab:purple"),
        "before": ("^", "tab:green"),
    }
    for axis, (scene, mapper) in zip(axes[0], panels, strict=True):
        for offset, (recipe, (marker, colour)) in enumerate(shown.items()):
            for place, database in enumerate(databases):
                values = [
                    figures["auc1"]
                    for cell, figures in known.items()
                    if (cell.scene, cell.mapper, cell.recipe, cell.database) == (scene, mapper, recipe, database)
                ]
                at = [place + 0.16 * (offset - 2)] * len(values)
                label = {"before": "before verification", "unrefined": "sync, refine=false"}.get(recipe, recipe)
                axis.scatter(at, values, marker=marker, color=colour, label="" if place else label, s=26, alpha=0.8)
        axis.set_xticks(range(len(databases)), databases, rotation=45, ha="right")
        axis.set_title(f"{scene}, {mapper}")
        axis.set_ylim(-0.03, 1.03)
        axis.grid(axis="y", alpha=0.3)
    axes[0][0].set_ylabel("AUC of relative pose at 1°")
    axes[0][-1].legend(loc="lower left", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
