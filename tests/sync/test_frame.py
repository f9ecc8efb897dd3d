"""Answers as data frames, graphs and pages of notebooks, and the clusterer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from stiefelsync import Matchings, compare, datasets, inspect, score, synchronise
from stiefelsync.clusterer import MatchClusterer
from stiefelsync.errors import InputError
from stiefelsync.sync.comparison import Comparisons
from stiefelsync.sync.method import Outcome

PROBLEM, TRUTH = datasets.synthetic(6, 5, 0.9, 0.1, rng=0)
RESULT = synchronise(PROBLEM, 6, method="tracks")
DRAWN = datasets.records(40, sources=3, duplicates=0.3, rng=0)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb"])
def test_every_library_makes_a_frame_of_an_answer(library):
    module = pytest.importorskip(library)
    pytest.importorskip("pyarrow")
    frame = RESULT.to_frame()
    assert list(frame) == ["track", "object", "point", "confidence"]
    made = {
        "pandas": lambda: module.DataFrame(frame)["track"].tolist(),
        "polars": lambda: module.DataFrame(frame)["track"].to_list(),
        "pyarrow": lambda: module.table(frame).column("track").to_pylist(),
        "duckdb": lambda: module.from_arrow(pytest.importorskip("pyarrow").table(frame)).df()["track"].tolist(),
    }[library]()
    count = np.bincount(RESULT.labels[RESULT.labels >= 0])
    expected = [c if c >= 0 and count[c] > 1 else -1 for c in RESULT.labels.tolist()]
    assert made == expected


def test_the_frame_of_records_has_their_ids():
    result = synchronise(Matchings.from_table(DRAWN.pairs))
    frame = result.to_frame()
    assert list(frame) == ["cluster_id", "source_dataset", "unique_id", "confidence"]
    assert frame["unique_id"].tolist() == result.input.records.ids.tolist()
    assert repr(frame).startswith(f"Frame({len(result.input.records):,} rows: cluster_id")


def test_scores_take_answers_themselves():
    assert score(RESULT, TRUTH) == score(RESULT.labels, TRUTH)
    loose = synchronise(PROBLEM, 6, method="matcheig")
    assert score(loose, TRUTH) == score(loose.matchings(), TRUTH)


def test_notebooks_show_tables():
    assert "<th>matches</th>" in PROBLEM._repr_html_()
    assert "Synchronisation by tracks" in RESULT._repr_html_()
    found = inspect(PROBLEM)
    assert "None" not in repr(found)
    assert "<th>conflicts</th>" in found._repr_html_()
    rows = compare(PROBLEM, ["union-find"], universe=6)
    assert "<td>union-find</td>" in rows._repr_html_()


def mine(matchings, universe, /, *, rng, callback=None):
    """Everybody alone."""
    return Outcome(labels=np.arange(matchings.n_points))


def test_comparisons_take_functions_problems_and_seeds():
    drawn = [datasets.synthetic(6, 5, 0.9, 0.3, rng=seed) for seed in range(3)]
    problems, truths = zip(*drawn, strict=True)
    rows = compare(problems, [mine, "tracks"], truth=truths, rng=[0, 1])
    assert isinstance(rows, Comparisons)
    assert [row.method for row in rows] == ["tracks", "mine"]
    assert [row.runs for row in rows] == [6, 6]
    alone = [compare(p, ["tracks"], truth=t, rng=seed)[0].fscore for p, t in drawn for seed in (0, 1)]
    assert rows[0].fscore == pytest.approx(np.mean(alone))
    assert rows[0].sd["fscore"] == pytest.approx(np.std(alone, ddof=1))
    frame = rows.to_frame()
    assert frame["fscore_sd"].tolist() == [rows[0].sd["fscore"], rows[1].sd["fscore"]]
    latex = rows.to_latex().splitlines()
    assert latex[0] == r"\begin{tabular}{lrrrrrr}"
    assert latex[3].startswith(rf"tracks & {rows[0].fscore:.3f} $\pm$ {rows[0].sd['fscore']:.3f} & ")
    with pytest.raises(InputError, match="3 problems need as many truths, at least one; got 1"):
        compare(problems, ["tracks"], truth=[TRUTH])
    with pytest.raises(InputError, match="no seed is named"):
        compare(PROBLEM, ["tracks"], rng=[])


def test_comparisons_have_sensible_methods_of_their_own():
    assert {row.method for row in compare(PROBLEM, truth=TRUTH)} == {"accurate", "fast", "sparse-stiefel", "union-find"}


SIMILAR = np.array([[1, 0.9, 0.8, 0.0], [0.9, 1, 0.7, 0.1], [0.8, 0.7, 1, 0.0], [0.0, 0.1, 0.0, 1]])


def test_the_clusterer_in_scikit_learns_manner():
    assert MatchClusterer().fit_predict(SIMILAR).tolist() == [0, 0, 0, 1]
    grouped = MatchClusterer().fit(SIMILAR, groups=["x", "y", "x", "y"])
    assert len({(g, c) for g, c in zip("xyxy", grouped.labels_.tolist(), strict=True)}) == 4
    assert grouped.labels_[0] == grouped.labels_[1]
    assert grouped.result_.consistent
    assert MatchClusterer().fit_predict(np.eye(3)).tolist() == [0, 1, 2]
    made = MatchClusterer(threshold=0.5)
    assert made.get_params() == {"threshold": 0.5, "method": None, "random_state": None}
    assert made.set_params(method="tracks").method == "tracks"
    assert repr(made) == "MatchClusterer(threshold=0.5, method='tracks')"


def test_scikit_learn_can_clone_it():
    base = pytest.importorskip("sklearn.base")
    cloned = base.clone(MatchClusterer(threshold=0.4, random_state=3))
    assert cloned.get_params() == {"threshold": 0.4, "method": None, "random_state": 3}


class OfSamples(MatchClusterer):
    """Clusters samples by how near they are: the checks of scikit-learn give samples."""

    def fit(self, X, y=None, *, groups=None):
        from sklearn.utils.validation import validate_data

        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        features = self.n_features_in_
        super().fit(np.exp(-((X[:, None] - X) ** 2).mean(axis=2)), y, groups=groups)
        self.n_features_in_ = features
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = type(tags.input_tags)()
        return tags


@pytest.mark.filterwarnings("ignore")
def test_it_passes_the_checks_of_scikit_learn():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    tags = MatchClusterer().__sklearn_tags__()
    assert (tags.estimator_type, tags.input_tags.pairwise, tags.target_tags.required) == ("clusterer", True, False)
    told = checks.check_estimator(OfSamples(), on_fail=None, on_skip=None)
    assert [check["check_name"] for check in told if check["status"] == "failed"] == []
    assert sum(check["status"] == "passed" for check in told) > 30


def test_similarities_may_be_sparse_and_groups_of_any_type():
    groups = ["x", ("y", 1), None, ("y", 1)]
    whole = MatchClusterer().fit_predict(SIMILAR, groups=["x", "y", "z", "y"])
    for given in (sparse.csr_matrix(SIMILAR), sparse.coo_array(SIMILAR)):
        assert MatchClusterer().fit_predict(given).tolist() == MatchClusterer().fit_predict(SIMILAR).tolist()
        assert MatchClusterer().fit_predict(given, groups=groups).tolist() == whole.tolist()
    with pytest.raises(InputError, match="must be symmetric"):
        MatchClusterer().fit(sparse.csr_array(np.array([[0, 0.5], [0, 0]])))
    with pytest.raises(InputError, match="must be probabilities"):
        MatchClusterer().fit(np.full((2, 2), np.nan))


@pytest.mark.parametrize(
    ("X", "groups", "message"),
    [
        ([[1, 0]], None, "must form a square"),
        ([[1, 0.5], [0.4, 1]], None, "must be symmetric"),
        ([[1, 2], [2, 1]], None, "must be probabilities"),
        ([[1, 0.5], [0.5, 1]], ["a"], "2 samples need as many groups"),
    ],
)
def test_what_the_clusterer_refuses(X, groups, message):
    with pytest.raises(InputError, match=message):
        MatchClusterer().fit(X, groups=groups)
    with pytest.raises(InputError, match="unknown parameter 'depth'"):
        MatchClusterer().set_params(depth=3)
