"""Labels and their sums, which compiled moves change in place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call, constant, struct
from stiefelsync.sync.likelihood.model import Counts, Rates, first_rates, fit_rates, fit_slope, log_posterior
from stiefelsync.sync.likelihood.observations import Observations

__all__ = ["State"]

Ints = NDArray[np.int64]

_LEAST_CLIMBS, _CLIMBS_PER_LABEL = 30, 2  # pairs of labels that are tried
_FITS = 4  # of the rates to the labels given, since θ takes a step each time


class State:
    """Labels of all points, the rates that fit them, and sums from which any move is scored.

    Parameters
    ----------
    seen
        What was observed.
    labels : (m,) int
        Where to begin; -1 = a label of its own.
    seed
        Of all that is drawn.
    most
        Labels that more than one point may carry, at most; as many as there are points by default.
        Where every object has so many points, every point carries one of them.
    informed
        Whether rates are fitted to these labels at once, or only when `fit` is called.
    """

    def __init__(
        self, seen: Observations, labels: Ints, *, seed: int, most: int | None = None, informed: bool = True
    ) -> None:
        k, m = len(seen.sizes), len(seen.owner)
        self.seen, self.labels = seen, _named(labels)
        self.most = m if most is None else most
        self._size, self._begun, self._shared = np.zeros(m, np.int32), np.zeros(m, np.int32), np.zeros(1, np.int64)
        cells = constant("bins") * constant("reaches")
        self._worth, self._birth = np.zeros(5 * len(seen.pairs)), np.zeros(k)
        self._held, self._absent = np.zeros(cells), np.zeros(cells)
        self._weight = None if seen.ranks is None else np.zeros(len(seen.partner))
        self._order = np.arange(k, dtype=np.int32)
        self._chain = struct(
            "Chain", k=k, m=m, d=m, offsets=seen.offsets, owner=seen.owner, near_start=seen.near_start,
            near_object=seen.near_object, near_pair=seen.near_pair, near_back=seen.near_back,
            partner_start=seen.partner_start, partner=seen.partner, weight=self._weight, worth=self._worth,
            later_start=seen.later_start, later_object=seen.later_object, later_weight=seen.later_weight,
            far_start=seen.far_start, far_object=seen.far_object, total=seen.total, held=self._held,
            absent=self._absent, birth=self._birth, labels=self.labels, point=np.zeros(k * m, np.int32),
            near=np.zeros(k * m, np.int32), far=np.zeros(k * m, np.uint8), size=self._size, begun=self._begun,
            shared=self._shared, most=self.most, alone=int(not (seen.sizes == self.most).all()),
            random=np.array([seed], dtype=np.uint64),
        )  # fmt: skip
        call("begin_chain", self._chain)
        self._use(first_rates(seen))
        if informed:
            for _ in range(_FITS):
                self.fit()

    def counts(self) -> Counts:
        """Count what the labels say; O(points × compared objects + k·m)."""
        pairs, k = len(self.seen.pairs), len(self.seen.sizes)
        of_pairs, held, absent, begun = (np.empty(n, np.int64) for n in (4 * pairs, *[len(self._held)] * 2, k))
        call("count_pairs", self._chain, pairs, of_pairs)
        call("count_cells", self._chain, held, absent, begun)
        right, both, rows, columns = of_pairs.reshape(4, -1).astype(np.float64)
        returns = float(np.maximum(self._begun - 1, 0).sum())
        labels = int((self._size > 0).sum())
        seen, unseen, first = (x.astype(np.float64) for x in (held, absent, begun))
        return Counts(right, both, rows, columns, seen, unseen, first, returns, labels)

    def fit(self) -> None:
        """Fit the rates to the labels."""
        rates = fit_rates(self.seen, self.counts(), self.rates)
        if self._weight is not None and self.seen.ranks is not None:
            a, b = self.seen.ends
            slope = round(fit_slope(self.seen.ranks, self.labels[a] == self.labels[b]) * 1024) / 1024
            self._weight[self.seen.entries] = np.round(slope * self.seen.ranks * 2**20) / 2**20
        self._use(rates)

    def _use(self, rates: Rates) -> None:
        self.rates = rates
        self._worth[:] = rates.worth.ravel()
        self._held[:], self._absent[:], self._birth[:] = rates.held, rates.absent, rates.birth
        self._chain.back = rates.back

    def move(self, *, exchanges: int = 0, temperature: float = 1.0) -> None:
        """Visit all objects once, with so many tries to exchange two labels near an object."""
        ends, inverse = self.seen.ends, 1 / temperature if temperature else np.inf
        call(
            "sample_labels", self._chain, 1, exchanges, 0, inverse, ends, ends.shape[1], self.seen.distance,
            self._order,
        )  # fmt: skip

    def climb(self) -> None:
        """Try at temperature zero to exchange, and to join, the labels that most matches lead between."""
        L, (a, b) = self.labels, self.seen.ends
        across = np.flatnonzero(L[a] != L[b])
        low, high = np.minimum(L[a], L[b])[across], np.maximum(L[a], L[b])[across]
        _, first, count = np.unique(low * len(L) + high, return_index=True, return_counts=True)
        shared = int((self._size > 1).sum())
        most = np.argsort(-count, kind="stable")[: max(_LEAST_CLIMBS, _CLIMBS_PER_LABEL * shared)]
        ends = np.ascontiguousarray(self.seen.ends[:, across[first[most]]])
        n = len(most)
        call("sample_labels", self._chain, 1, n, n, np.inf, ends, n, self.seen.distance, self._order)

    def log_posterior(self) -> float:
        """How likely matches and labels are."""
        return log_posterior(self.seen, self.counts(), self.rates)

    def compact(self) -> NDArray[np.int32]:
        """Return a copy of the labels, numbered from 0 without holes."""
        return np.unique(self.labels, return_inverse=True)[1].astype(np.int32)


def _named(labels: Ints) -> Ints:
    """Return labels with one of its own for every point that has none, numbered from 0 without holes."""
    labels = np.array(labels, dtype=np.int64)
    alone = np.flatnonzero(labels < 0)
    labels[alone] = labels.max(initial=-1) + 1 + np.arange(len(alone))
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
