"""A clusterer in the manner of scikit-learn, which it does not need: similarities in, labels out."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync.errors import InputError, unknown_name
from stiefelsync.matching.table import DOUBTFUL, linked_pairs
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise

__all__ = ["MatchClusterer"]


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

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Cluster samples.

        Parameters
        ----------
        X : (n, n)
            Symmetric: how probably two samples are the same, from 0 to 1; 0 where nobody knows.
        y
            Ignored.
        groups : (n,), optional
            Group of every sample, of any type that can be compared.
        """
        similarity = np.asarray(X, dtype=np.float64)
        if similarity.ndim != 2 or similarity.shape[0] != similarity.shape[1]:
            raise InputError(f"similarities must form a square, got shape {similarity.shape}")
        if not np.allclose(similarity, similarity.T):
            raise InputError("similarities must be symmetric; their mean with the transpose would be")
        if ((similarity < 0) | (similarity > 1)).any() or not np.isfinite(similarity).all():
            raise InputError("similarities must be probabilities, from 0 to 1")
        n = len(similarity)
        group = np.zeros(n, dtype=np.int64) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        if group.shape != (n,):
            raise InputError(f"{n} samples need as many groups, got shape {group.shape}")
        self.n_features_in_ = n
        a, b = np.nonzero(np.triu(similarity, 1))
        order = np.argsort(group, kind="stable")
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        problem = linked_pairs(
            place[np.stack([a, b], axis=1)], similarity[a, b], group[order],
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

    def __repr__(self) -> str:
        default = inspect.signature(type(self)).parameters
        changed = {name: value for name, value in self.get_params().items() if value != default[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"
