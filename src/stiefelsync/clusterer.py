"""A clusterer in the manner of scikit-learn, which it does not need: similarities in, labels out."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from stiefelsync._border import typed
from stiefelsync.errors import InputError, unknown_name
from stiefelsync.matching.table import DOUBTFUL, linked_pairs
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise

__all__ = ["MatchClusterer"]

TOLERANCE = 1e-6  # of similarities that should be equal


class MatchClusterer:
    """Cluster samples by how probably pairs of them are the same, at most one sample of a group in every cluster.

    With `groups` (images, sessions, sources free of duplicates) two samples of one group are never in one cluster;
    without, any may be, and the method is "correlation".

    Parameters
    ----------
    threshold
        Similarity below which a pair is ignored where there are groups.
    method
        Of :func:`~stiefelsync.synchronise`; None leaves the choice to it.
    random_state
        Seed.

    Attributes
    ----------
    labels_ : (n,) int64
        Cluster of every sample, numbered by first appearance; every sample has one.
    result_ : Synchronisation
        The answer with all that it can tell.

    Examples
    --------
    >>> similarity = np.array([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
    >>> MatchClusterer().fit_predict(similarity).tolist()
    [0, 0, 1]
    """

    def __init__(
        self, *, threshold: float = DOUBTFUL, method: str | None = None, random_state: int | None = None
    ) -> None:
        self.threshold, self.method, self.random_state = threshold, method, random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change parameters."""
        for name, value in params.items():
            if name not in self.get_params():
                raise unknown_name("parameter", name, self.get_params())
            setattr(self, name, value)
        return self

    @typed
    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Cluster samples.

        Parameters
        ----------
        X : (n, n)
            Symmetric: how probably two samples are the same, from 0 to 1; 0 where nobody knows. Sparse or not.
        y
            Ignored.
        groups : (n,), optional
            Group of every sample, numbers or texts or whatever else can be a key of a dict.
        """
        n, a, b, similarity = _pairs(X)
        code: dict[Any, int] = {}
        listed = [0] * n if groups is None else list(groups)  # type: ignore[arg-type]
        group = np.array([code.setdefault(value, len(code)) for value in listed], dtype=np.int64)
        if len(group) != n:
            raise InputError(f"{n} samples need as many groups, got {len(group)}")
        self.n_features_in_ = n
        order = np.argsort(group, kind="stable")
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        problem = linked_pairs(
            place[np.stack([a, b], axis=1)], similarity, group[order],
            duplicate_free=groups is not None, threshold=self.threshold if groups is not None else 0.0,
        )  # fmt: skip
        self.result_: Synchronisation | None = None
        labels = np.arange(n)
        if problem.n_matches and problem.n_objects > 1:
            chosen = {} if self.method is None else {"method": self.method}
            self.result_ = synchronise(problem, rng=self.random_state, **chosen)  # type: ignore[arg-type]
            found = self.result_.labels
            labels = np.where(found < 0, found.max(initial=-1) + 1 + np.arange(n), found)[place]
        first = np.unique(labels, return_index=True, return_inverse=True)
        number = np.empty(len(first[0]), dtype=np.int64)
        number[np.argsort(first[1])] = np.arange(len(first[0]))
        self.labels_: NDArray[np.int64] = number[first[2]]
        return self

    def fit_predict(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> NDArray[np.int64]:
        """Cluster samples as :meth:`fit` does and return their labels; shape (n,)."""
        return self.fit(X, y, groups=groups).labels_

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn asks of its estimators: this one takes similarities of samples, and no target."""
        from sklearn.utils import InputTags, Tags, TargetTags  # type: ignore[import-untyped]  # it asks, and is there

        return Tags(
            estimator_type="clusterer",
            target_tags=TargetTags(required=False),
            input_tags=InputTags(pairwise=True, positive_only=True, sparse=True),
        )

    def __repr__(self) -> str:
        default = inspect.signature(type(self)).parameters
        changed = {name: value for name, value in self.get_params().items() if value != default[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _pairs(X: Any) -> tuple[int, NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Return how many samples there are, and the pairs a < b with a similarity, (M,) each, after checking them."""
    whole: Any = sparse.csr_array(X, dtype=np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if whole.ndim != 2 or whole.shape[0] != whole.shape[1]:
        raise InputError(f"similarities must form a square, got shape {whole.shape}")
    values = whole.data if sparse.issparse(whole) else whole
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError("similarities must be probabilities, from 0 to 1")
    apart = abs(whole - whole.T)
    if ((apart.data if sparse.issparse(whole) else apart) > TOLERANCE).any():
        raise InputError("similarities must be symmetric; their mean with the transpose would be")
    if sparse.issparse(whole):
        above = sparse.triu(whole, 1).tocoo()
        above.eliminate_zeros()
        return whole.shape[0], above.row, above.col, above.data
    a, b = np.nonzero(np.triu(whole, 1))
    return whole.shape[0], a, b, whole[a, b]
