"""Positions are moved off the grid they were rounded to, and no others are."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import InputError, Matchings
from stiefelsync.positions.refinement import refine_positions

TURN = 1.1 * np.array([[0.98, 0.2], [-0.2, 0.98]])


def views(cells: list[float], n: int = 400, seed: int = 0) -> tuple[Matchings, np.ndarray]:
    """Views of a plane, each turned and enlarged once more, rounded to cells; and the exact positions, (k, n, 2)."""
    rng = np.random.default_rng(seed)
    exact = [rng.uniform(0, 600, (n, 2))]
    for _ in cells[1:]:
        exact.append(exact[-1] @ TURN + 50)
    given = [(np.floor(at / cell) + 0.5) * cell if cell else at for at, cell in zip(exact, cells, strict=True)]
    same = np.stack([np.arange(n)] * 2, axis=1)
    pairs = {(i, j): same for i in range(len(cells)) for j in range(i + 1, len(cells))}
    return Matchings.from_pairs(pairs, [n] * len(cells), coordinates=np.vstack(given)), np.stack(exact)


def disagreement(at: np.ndarray, k: int) -> float:
    """Return how far positions are from where those of the view before say, root mean square."""
    views = at.reshape(k, -1, 2)
    return float(np.sqrt(np.mean((views[1:] - views[:-1] @ TURN - 50) ** 2)))


def literal_put(given: np.ndarray, x: np.ndarray, y: np.ndarray, t: int, neighbours: int, spread: float) -> np.ndarray:
    """Where the affine map by match t and its nearest, by the given places, puts y of t: fitted thrice."""
    near = sorted(range(len(x)), key=lambda s: np.hypot(*(given[s] - given[t])))[: neighbours + 1]
    reach = max(np.hypot(*(x[s] - x[t])) for s in near)
    base = np.array([np.exp(-1.5 * (np.hypot(*(x[s] - x[t])) / reach) ** 2) for s in near])
    rows, weights = np.array([[1, *(x[s] - x[t])] for s in near]), base
    for _ in range(3):
        root = np.sqrt(weights)[:, None]
        T = np.linalg.lstsq(root * rows, root * y[near], rcond=None)[0]
        off = np.hypot(*(y[near] - rows @ T).T)
        weights = base / (1 + (off / spread) ** 2)  # a residual of `spread` halves it
    return T[0]


def test_positions_are_means_of_where_maps_put_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stiefelsync.positions.refinement._RIDGE", 0.0)  # no neighbours are in a line here
    rng, n, cells = np.random.default_rng(5), 40, np.array([8.0, 10.0, 6.0])
    problem, _ = views(cells.tolist(), n=n)
    # Some matches fewer in one pair, and places in cells, so that no two are equally near.
    problem = problem.keep((problem.match_pairs != 1) | (rng.random(problem.n_matches) < 0.7))
    given = np.asarray(problem.coordinates, dtype=float) + rng.uniform(-1, 1, (3 * n, 2))
    problem = Matchings.from_endpoints(problem.endpoints, problem.sizes, coordinates=given)
    given = np.asarray(problem.coordinates, dtype=float)
    at = given
    for _ in range(3):
        total, count = given.copy(), np.ones(3 * n)
        for (i, j), block in problem.pairs().items():
            ends = block + np.array([i, j]) * n
            scale = np.sqrt((cells[i] ** 2 + cells[j] ** 2) / 2)
            for one, other in ((0, 1), (1, 0)):
                for t in range(len(ends)):
                    put = literal_put(given[ends[:, one]], at[ends[:, one]], at[ends[:, other]], t, 6, 0.6 * scale)
                    point = ends[t, other]
                    weight = 1 / (1 + (np.hypot(*(put - given[point])) / scale) ** 4)
                    total[point] += weight * put
                    count[point] += weight
        half = np.repeat(cells, n)[:, None] / 2
        at = np.clip(total / count[:, None], given - half, given + half)
    found = refine_positions(problem, neighbours=6, cell=cells)
    np.testing.assert_allclose(found, at, atol=1e-6)
    assert np.abs(found - given).mean() > 0.5


def test_points_of_a_track_agree_better_and_stay_in_their_cells() -> None:
    problem, _ = views([8.0, 8.0, 8.0, 8.0])
    given = np.asarray(problem.coordinates, dtype=float)
    at = refine_positions(problem)
    assert disagreement(at, 4) < disagreement(given, 4) / 2
    assert np.abs(at - given).max() <= 4


def test_the_positions_of_a_detector_stay() -> None:
    problem, exact = views([8.0, 0.0, 8.0])
    given = np.asarray(problem.coordinates, dtype=float)
    at = refine_positions(problem)
    assert (at[400:800] == given[400:800]).all()
    # Beside exact positions the others become nearly exact, not only agreeing.
    for own, true in ((at[:400], exact[0]), (at[800:], exact[2])):
        assert np.sqrt(np.mean((own - true) ** 2)) < 0.7 * 8 / 12**0.5
    problem, _ = views([0.0, 0.0])
    assert (refine_positions(problem) == problem.coordinates).all()


def test_turning_the_names_of_images_changes_nothing() -> None:
    problem, _ = views([8.0, 8.0, 8.0])
    n = 400
    turned = Matchings.from_pairs(
        {(2 - j, 2 - i): block[:, ::-1] for (i, j), block in problem.pairs().items()},
        [n] * 3,
        coordinates=np.asarray(problem.coordinates).reshape(3, n, 2)[::-1].reshape(-1, 2),
    )
    one, two = refine_positions(problem).reshape(3, n, 2), refine_positions(turned).reshape(3, n, 2)[::-1]
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_few_matches_unknown_positions_and_wrong_matches() -> None:
    problem, _ = views([8.0, 8.0])
    given = np.asarray(problem.coordinates, dtype=float)
    few = problem.keep(np.arange(problem.n_matches) < 3)
    assert (refine_positions(few) == given).all()
    some = given.copy()
    some[7] = np.nan
    at = refine_positions(
        Matchings.from_endpoints(problem.endpoints, problem.sizes, coordinates=some), cell=np.array([8.0, 8.0])
    )
    assert np.isnan(at[7]).all()
    assert np.isfinite(np.delete(at, 7, axis=0)).all()
    assert (at[407] == given[407]).all()
    # A match across the image puts its points nowhere near their cells, so that they stay; its neighbours do not mind.
    ends = problem.endpoints.copy()
    ends[[10, 11], 1] = ends[[11, 10], 1]
    wrong = Matchings.from_endpoints(ends, problem.sizes, coordinates=given)
    moved = refine_positions(wrong) - given
    assert np.abs(moved[[10, 11]]).max() < 0.1
    others = np.delete(np.arange(400), [10, 11])
    assert np.abs((refine_positions(wrong) - refine_positions(problem))[others]).mean() < 0.05


def test_what_cannot_be_refined_is_named() -> None:
    with pytest.raises(InputError, match="no coordinates"):
        refine_positions(Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1]))
    with pytest.raises(InputError, match="at least 1"):
        refine_positions(views([8.0, 8.0])[0], neighbours=0)
