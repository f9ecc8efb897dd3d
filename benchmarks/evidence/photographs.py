"""Pages on photographs."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.evidence.page import Grid, Page, Printed, Record, number
from benchmarks.evidence.plots import dots

__all__ = ["PAGES"]

DATABASES = {
    "verified": "matches as COLMAP verified them",
    "ratio95": "a ratio test of .95",
    "rewired20": "a fifth of the matches rewired",
    "grid8": "keypoints rounded to a grid of 8 px",
    "raw": "matches that were never verified",
}


def _mean(printed: Printed, recipe: str, scene: str, database: str, mapper: str) -> str:
    for row in printed.tables[0].rows:
        if tuple(row[:4]) == (scene, database, mapper, recipe):
            return row[list(printed.tables[0].header).index("AUC@1°")]
    return "–"


def _poses(record: Record) -> Grid:
    rows = []
    for scene in ("entry", "fountain"):
        for database in DATABASES:
            cells = [
                _mean(record["cameras"], recipe, scene, database, mapper)
                for mapper in ("incremental", "global")
                for recipe in ("original", "sync")
            ]
            rows.append([f"{scene}, {database}", *cells])
    return Grid(["scene, database", "incremental", "after sync", "global", "after sync"], rows)


def _poses_claim(record: Record) -> str:
    table = _poses(record)
    verdicts = record["verdicts"].tables[0]
    entry, fountain, grid = (table.row(name) for name in ("entry, verified", "fountain, verified", "entry, grid8"))
    held = [row[list(verdicts.header).index("AUC@1° holds")] for row in verdicts.rows]
    return (
        "Cleaning the matches gives COLMAP's incremental mapper better cameras where its "
        "verified matches still have "
        f"mistakes: AUC@1° of *entry* rises from {entry[1]} to {entry[2]}. Where they have few it "
        "changes nothing "
        f"(*fountain*, {fountain[1]} and {fountain[2]}), and with the global mapper verified "
        "matches gain nothing at "
        f"all ({entry[3]} and {entry[4]}). Keypoints on a grid gain with both mappers ({grid[1]} "
        f"to {grid[2]}, "
        f"{grid[3]} to {grid[4]}). The recommended recipe does no harm beyond the spread of four "
        "draws in "
        f"{held.count('yes')} of {len(held)} cases; the other {len(held) - held.count('yes')} are "
        "verified or rewired "
        "matches with the global mapper, which `stiefelsync` advises to leave as they are."
    )


def _poses_plot(record: Record, axes: Any) -> None:
    table = _poses(record)
    names = [row[0] for row in table.rows]
    columns = {"original": 1, "after sync": 2}
    values = {name: [float(row[place]) for row in table.rows] for name, place in columns.items()}
    random = [_mean(record["cameras"], "at random", *name.split(", "), "incremental") for name in names]
    values["as many removed at random"] = [np.nan if text == "–" else float(text) for text in random]
    dots(axes, names, values, "AUC of relative pose at 1°, incremental mapper")


def _poses_notes(record: Record) -> str:
    rows = record["controls"].tables[0].rows
    change = [number(row[5]) for row in rows]
    error = [number(row[4]) for row in rows]
    return (
        "Removing as many matches at random helps far less (plot). With the global mapper even "
        "removing exactly the "
        "matches that the true cameras call wrong changes AUC@1° by no more than "
        f"{max(abs(number(row[6])) for row in rows):.3f}. The changes by `sync` there, "
        f"{min(change):+.4f} to "
        f"{max(change):+.4f}, are within what other matches of the same scene would change, which "
        "the delete-d "
        f"jackknife puts at {min(error):.3f} to {max(error):.3f}."
    )


def _herz(record: Record) -> Grid:
    table = record["matches"].tables[0]
    kept = ["input", "union-find, conflicting tracks discarded", "tracks, without positions", "tracks"]
    rows = []
    for row in table.rows:
        if row[1] in kept:
            rows.append([f"{row[0]}: {row[1].split(',')[0] if 'union' in row[1] else row[1]}", row[3], row[4], row[7]])
    return Grid(["matches: answer", "wrong removed", "true removed", "fscore"], rows)


def _herz_claim(record: Record) -> str:
    table = _herz(record)
    union, tracks = table.row("raw: union-find"), table.row("raw: tracks")
    raw, verified = table.row("raw: input"), table.row("verified: input")
    return (
        f"`tracks` removes {tracks[1]} wrong matches of Herz-Jesu-P8 and loses {tracks[2]} right "
        "ones. Union-find, "
        "which drops every contradicting track as structure-from-motion programs do, removes "
        f"{union[1]} and loses "
        f"{union[2]}. The fscore of the raw matches rises from {raw[3]} to {tracks[3]}; that of "
        "the verified matches, "
        f"which have hardly a mistake, falls from {verified[3]} to "
        f"{table.row('verified: tracks')[3]}."
    )


def _herz_plot(record: Record, axes: Any) -> None:
    table = _herz(record)
    dots(axes, [row[0] for row in table.rows], {"fscore": [float(row[3]) for row in table.rows]}, "fscore")


SHORT = {"ratio95": "ratio .95", "rewired20": "20 % rewired"}
EPIPOLAR = ("tracks", "accurate", "quickmatch", "kruskal", "matchfame", "union-find")


def _epipolar(record: Record) -> Grid:
    table = record["matches"].tables[0]
    head = ["method"]
    rows = [[name] for name in ("input", *EPIPOLAR)]
    for scene, database in (
        ("entry", "ratio95"),
        ("entry", "rewired20"),
        ("fountain", "ratio95"),
        ("fountain", "rewired20"),
    ):
        head.append(f"{scene}, {SHORT[database]}")
        for row in rows:
            name = "*input*" if row[0] == "input" else row[0]
            found = next(r for r in table.rows if r[0] == scene and r[1] == database and r[2].split(":")[0] == name)
            row.append(found[5])
    return Grid(head, rows)


def _epipolar_claim(record: Record) -> str:
    table = _epipolar(record)
    ours, given = table.row("tracks"), table.row("input")
    best = sum(ours[c] == max(row[c] for row in table.rows[1:]) for c in range(1, 5))
    above = [row[0] for row in table.rows[1:] if all(float(row[c]) > float(given[c]) for c in range(1, 5))]
    return (
        f"Judged by true epipolar lines, `tracks` has the highest fscore of all methods on {best} "
        "of four databases: "
        + ", ".join(f"{ours[c]} for an input of {given[c]}" for c in range(1, 5))
        + f". Above the input on all four: {', '.join(f'`{name}`' for name in above)}. "
        "`tracks` alone looks at positions; `stiefelsync sync` chooses it for photographs."
    )


def _epipolar_plot(record: Record, axes: Any) -> None:
    table = _epipolar(record)
    series = {name: table.numbers(name) for name in table.header[1:]}
    dots(axes, [row[0] for row in table.rows], series, "fscore of the matches that are kept")


def _few(record: Record) -> Grid:
    table = record["photographs"].tables[0]
    rows = []
    for scene in ("fountain", "entry", "herz-jesu"):
        for database in ("verified", "raw", "rewired20"):
            some = [row for row in table.rows if row[:2] == [scene, database]]
            means = [np.mean([float(row[c]) for row in some]) for c in (4, 5, 7)]
            rows.append([f"{scene}, {database}", *(f"{mean:.3f}" for mean in means)])
    return Grid(["scene, database", "as given", "accurate", "tracks"], rows)


def _few_claim(record: Record) -> str:
    table = record["photographs"].tables[0]
    rewired = [row for row in table.rows if row[1] == "rewired20"]
    both = [[float(row[c]) for row in rewired] for c in (5, 7)]
    chosen = sum(row[9] == "tracks" for row in table.rows)
    return (
        "For three to six photographs `stiefelsync sync` chooses `tracks`, which looks at "
        "positions, wherever "
        f"neighbouring matches move alike: in {chosen} of {len(table.rows)} cases here. With a "
        "fifth of the matches "
        f"wrong `tracks` has fscores of {min(both[1]):.3f} to {max(both[1]):.3f}, `accurate` "
        f"{min(both[0]):.3f} to "
        f"{max(both[0]):.3f}."
    )


def _few_plot(record: Record, axes: Any) -> None:
    table = _few(record)
    names = [row[0] for row in table.rows]
    dots(axes, names, {name: table.numbers(name) for name in table.header[1:]}, "fscore of the matches that are kept")


def _positions(record: Record) -> Grid:
    table = record["correspondences"].tables[0]
    kept = ["ours", "keypoints told", "matches told", "Kruskal, 4 px"]
    rows = [
        [f"{row[0].partition('-')[0]}, {row[1]} px", *(row[list(table.header).index(name)] for name in kept)]
        for row in table.rows
    ]
    return Grid(["scene, noise", "ours", "keypoints told", "matches told", "grid of 4 px"], rows)


def _positions_claim(record: Record) -> str:
    table = _positions(record)
    half = [row for row in table.rows if row[0].endswith(" 0.5 px")]
    return (
        "Matches of programs without keypoints (LoFTR, RoMa, MASt3R) become tracks: with half a "
        "pixel of noise the "
        f"fscore of pairs of positions is {' and '.join(row[1] for row in half)}, where rounding "
        "positions to a grid "
        "of 4 px and joining the best matches first gives "
        f"{' and '.join(row[4] for row in half)}. With two pixels of "
        "noise keypoints 5 px apart can no longer be told apart."
    )


def _positions_plot(record: Record, axes: Any) -> None:
    table = _positions(record)
    names = [row[0] for row in table.rows]
    dots(axes, names, {name: table.numbers(name) for name in table.header[1:]}, "fscore of pairs of positions")


def _courtyard(record: Record) -> Grid:
    rows = [[f"{row[1]}, {row[2]}", row[4], row[5], row[9]] for row in record["courtyard"].tables[0].rows]
    return Grid(["database, mapper", "AUC@1°", "AUC@5°", "recall"], rows)


def _both(cell: str) -> tuple[float, float]:
    before, after = map(float, cell.split(", "))
    return before, after


def _courtyard_claim(record: Record) -> str:
    rows = record["courtyard"].tables[0].rows
    gains = [after - before for before, after in (_both(row[4]) for row in rows)]
    worse = [f"{row[1]}, {row[2]} ({gain:+.3f})" for row, gain in zip(rows, gains, strict=True) if gain < 0]
    least = min(float(row[9]) for row in rows)
    lost = any(after < before for before, after in (_both(row[6]) for row in rows))
    return (
        f"On a drawn courtyard that no rule was chosen on, cleaning changes AUC@1° by {min(gains):+.3f} to "
        f"{max(gains):+.3f}; {'images are' if lost else 'no image is'} lost, and the least recall is {least:.3f}. "
        f"Below the original: {'; '.join(worse) or 'none'}."
    )


def _courtyard_plot(record: Record, axes: Any) -> None:
    rows = record["courtyard"].tables[0].rows
    pairs = [_both(row[4]) for row in rows]
    names = [f"{row[1]}, {row[2]}" for row in rows]
    dots(axes, names, {"original": [b for b, _ in pairs], "cleaned": [a for _, a in pairs]}, "AUC@1°")


PAGES = [
    Page(
        name="courtyard",
        title="A scene that no rule was chosen on",
        runs={"courtyard": "benchmarks.courtyard --seeds 1"},
        claim=_courtyard_claim,
        table=_courtyard,
        plot=_courtyard_plot,
        alt="AUC at one degree of a drawn courtyard, originally and cleaned, for six databases and two mappers.",
        height=4.2,
        measured=(
            "Four walls with rows of equal windows, drawn at random and photographed by a walk inside; "
            "SIFT-like descriptors, ratio tests of .8 (*verified*), .88 and .95, the same on a grid of "
            "8 pixels, all verified by COLMAP. Original, then cleaned by the default recipe."
        ),
        missing="Other seeds: one draw has no spread to hold a difference against.",
        needs="colmap",
    ),
    Page(
        name="poses",
        title="Cameras from cleaned matches",
        runs={
            "cameras": "benchmarks.poses --records docs/results/poses.jsonl --table",
            "verdicts": "benchmarks.poses --records docs/results/poses.jsonl --verdicts",
            "controls": "benchmarks.poses --records docs/results/poses.jsonl --controls",
        },
        lines=dict.fromkeys(("cameras", "verdicts", "controls"), "docs/results/poses.jsonl"),
        needs="colmap",
        claim=_poses_claim,
        table=_poses,
        plot=_poses_plot,
        alt=(
            "AUC at one degree of two scenes with five databases each, before and after cleaning, incremental mapper."
        ),
        height=4.2,
        measured=(
            "AUC@1° is the area under the curve of recall over the error of relative poses up to "
            "1°, judged by the true "
            "cameras of two scenes of Strecha et al. (10 and 11 images of 1000 px); means over "
            "four draws, each of which "
            "leaves out a random 1 % of the matches. Databases: "
            + "; ".join(f"*{name}*, {what}" for name, what in DATABASES.items())
            + ". Of *raw* the global mapper makes no usable model, since nothing has a geometry. "
            "Jittered positions and "
            "Herz-Jesu-P8 are in the records, `docs/results/poses.jsonl`. The command without "
            "`--table` measures what "
            "the records lack, in hours, and needs `STIEFELSYNC_DATA`."
        ),
        notes=_poses_notes,
        missing=(
            "Other scenes with true cameras, images larger than 1000 px, and mappers other than "
            "COLMAP's two. Constants "
            "were chosen on draw 0 of *entry* and on *fountain*; both scenes are in this table."
        ),
    ),
    Page(
        name="herz-jesu",
        title="Wrong matches removed, right ones lost",
        runs={"matches": "benchmarks.herz_jesu"},
        needs="data",
        claim=_herz_claim,
        table=_herz,
        plot=_herz_plot,
        alt=("Fscore of the matches of Herz-Jesu-P8 as given and after union-find and tracks, raw and verified."),
        measured=(
            "Eight photographs with true cameras (Strecha et al.). A match is true if each of "
            "its points lies within 6 px "
            "of the epipolar line of the other, and kept if both points carry the same label. Of "
            "the wrong raw matches "
            "four in five close no cycle that contradicts them; positions find about half of these."
        ),
        missing=("Wrong matches along the epipolar line, which count as true here, and matches added by transitivity."),
    ),
    Page(
        name="epipolar",
        title="Methods on photographs, judged by true cameras",
        runs={
            "matches": "benchmarks.epipolar --scenes entry fountain --databases ratio95 "
            f"rewired20 --methods {' '.join(EPIPOLAR)}"
        },
        needs="data",
        claim=_epipolar_claim,
        table=_epipolar,
        plot=_epipolar_plot,
        alt=("Fscore of the matches kept by six methods on four databases, and of the matches as given."),
        height=3.6,
        measured=(
            "The protocol of MatchFAME's authors: a match is wrong if it is farther than .01 "
            "focal lengths from its true "
            "epipolar line; pairs with two matches or more. SIFT keypoints of images of 1000 px "
            "as coarse as those of a "
            "fifth of the original size stand for theirs. *ratio95* has a ratio test of .95; "
            "*rewired20* a fifth of the "
            "matches of every pair rewired."
        ),
        missing=(
            "Methods that need a dense eigendecomposition or more than a minute (`spectral`, "
            "`matcheig`, `clear`). So "
            "wide a threshold calls matches right that are off by twenty pixels along the line, "
            "for every method alike."
        ),
    ),
    Page(
        name="few-images",
        title="Three to six photographs",
        runs={"photographs": "benchmarks.few_images"},
        needs="data",
        claim=_few_claim,
        table=_few,
        plot=_few_plot,
        alt=("Fscore of the matches of three scenes as given and after accurate and tracks, three databases each."),
        height=3.4,
        measured=(
            "Sets of three, four and six images of three scenes with about 400 keypoints in the "
            "fullest image; means over "
            "the three. Right matches are near their true epipolar lines."
        ),
        missing=(
            "Other scenes. With 40 to 60 % of the matches wrong neighbours no longer move alike, "
            "and `accurate` stays the "
            "choice: `python -m benchmarks.few_images --most 100 --rewired 0.4 0.6`."
        ),
    ),
    Page(
        name="correspondences",
        title="Correspondences without keypoints",
        runs={"correspondences": "benchmarks.correspondences"},
        needs="data",
        claim=_positions_claim,
        table=_positions,
        plot=_positions_plot,
        alt=("Fscore of pairs of positions for two scenes and four amounts of noise, ours and three others."),
        height=3.4,
        measured=(
            "The verified matches of two scenes with noise added to every position and the "
            "keypoints forgotten; the truth "
            "is what `tracks` finds with keypoints known. *Keypoints told* takes every position "
            "for the nearest true "
            "keypoint, *matches told* every correspondence for the nearest true match: nobody "
            "has either. *Grid of 4 px* "
            "rounds positions and joins matches by Kruskal's rule; 2 and 8 px and union-find are "
            "in the record."
        ),
        missing=("Correspondences of a real matcher with a truth. The noise here is normal and equal everywhere."),
    ),
]
