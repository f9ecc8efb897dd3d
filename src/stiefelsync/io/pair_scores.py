"""What others say of pairs of images: scores as a CSV file with the columns image_a, image_b, score; lists of pairs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy.special import logit

from stiefelsync.errors import FormatError, InputError, counted
from stiefelsync.io.base import names_of
from stiefelsync.io.limits import lines, real, regular
from stiefelsync.matching.matchings import Matchings

__all__ = ["read_pair_scores", "read_pairs"]

_HEADER = ["image_a", "image_b", "score"]
_MIN_PROBABILITY = 0.001  # probability that a score is taken for at least, and one minus that at most


def read_pair_scores(path: Path, problem: Matchings) -> dict[tuple[int, int], float]:
    r"""Return the log-odds of pairs of objects that a file of probabilities gives, by their numbers.

    Parameters
    ----------
    path
        CSV file with the header ``image_a,image_b,score``; scores are probabilities between 0 and 1 that both images
        show the same place, and names those of the problem.

    Raises
    ------
    FormatError
        If it is no such file, or a pair has two scores.
    InputError
        If it names an image that the problem does not have.

    Examples
    --------
    >>> import tempfile
    >>> problem = Matchings.from_labels([0, 0], [1, 1], names=["a.jpg", "b.jpg"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "scores.csv").write_text("image_a,image_b,score\nb.jpg,a.jpg,0.5\n")
    ...     read_pair_scores(Path(folder, "scores.csv"), problem)
    {(0, 1): 0.0}
    """
    number = {name: i for i, name in enumerate(names_of(problem))}
    found: dict[tuple[int, int], float] = {}
    if not regular(path).exists():
        raise InputError(f"{path} does not exist")
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(lines(file, path), strict=True)
        try:
            if [cell.strip().lower() for cell in next(rows, [])] != _HEADER:
                raise FormatError(f"{path}: the first line of a file of scores is {','.join(_HEADER)}")
            for row in rows:
                if not row:
                    continue
                where = f"{path}, line {rows.line_num}"
                if len(row) != len(_HEADER):
                    raise FormatError(f"{where}: {counted(len(row), 'column')} where {len(_HEADER)} are expected")
                for name in row[:2]:
                    if name not in number:
                        raise InputError(f"{where}: there is no image {name!r}; names are those of the matches")
                i, j = sorted(number[name] for name in row[:2])
                if i == j:
                    raise FormatError(f"{where}: {row[0]!r} is paired with itself")
                if (i, j) in found:
                    raise FormatError(f"{where}: the pair of {row[0]!r} and {row[1]!r} has a score already")
                found[i, j] = float(logit(np.clip(_probability(row[2], where), _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)))
        except (csv.Error, UnicodeDecodeError) as error:
            raise FormatError(f"{path} is not a CSV file of UTF-8 text ({error})") from None
    if not found:
        raise FormatError(f"{path} holds no scores")
    return found


def read_pairs(path: Path) -> list[tuple[str, str]]:
    r"""Return the pairs of names in a file as COLMAP and hloc list them: two on every line, a space or a tab between.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "pairs.txt").write_text("a.jpg b.jpg\n# others\nmy photo.jpg\tb.jpg\n")
    ...     read_pairs(Path(folder, "pairs.txt"))
    [('a.jpg', 'b.jpg'), ('my photo.jpg', 'b.jpg')]
    """
    if not regular(path).exists():
        raise InputError(f"{path} does not exist")
    found = []
    with path.open(encoding="utf-8-sig") as file:
        try:
            for number, line in enumerate(lines(file, path), start=1):
                text = line.strip()
                if not text or text.startswith("#"):
                    continue
                names = [name.strip() for name in text.split("\t" if "\t" in text else None)]
                if len(names) != 2:
                    raise FormatError(
                        f"{path}, line {number}: {counted(len(names), 'name')} where 2 are expected; where names have"
                        " spaces put a tab between them"
                    )
                found.append((names[0], names[1]))
        except UnicodeDecodeError as error:
            raise FormatError(f"{path} is not UTF-8 text ({error})") from None
    return found


def _probability(text: str, where: str) -> float:
    try:
        value = real(text)
    except ValueError:
        raise FormatError(f"{where}: the score {text!r} is not a number") from None
    if not 0 <= value <= 1:
        raise FormatError(
            f"{where}: the score {text} is no probability between 0 and 1 that both images show the same place; "
            "turn other scores into one first"
        )
    return value
