"""The formulas of the likelihood, written out point by point as its documentation states them, on small problems."""

from __future__ import annotations

from itertools import pairwise, permutations
from math import ceil, exp, inf, isfinite, lgamma, log

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm, rankdata

from stiefelsync import datasets
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.counts import block_counts, soft_block_counts
from stiefelsync.sync.likelihood.gauss_seidel import State, ascend, assign, leave_out, refine, withdraw
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.mean_field import mean_field, sinkhorn
from stiefelsync.sync.likelihood.merge_labels import _joined, _pairs
from stiefelsync.sync.likelihood.model import log_likelihood, log_odds
from stiefelsync.sync.likelihood.reliability import beta_fit

D = 7


def _problem(seed, *, full=False, weighted=False, compared=False):
    """Return matchings and labels (some -1, some labels split in two, so that labels differ in size)."""
    rng = np.random.default_rng(seed)
    matchings, truth = datasets.synthetic(5, 6, 1.0 if full else 0.6, 0.4, rng=seed)
    if not (full or compared):
        i, j = matchings.pair_objects[matchings.match_pairs].T
        matchings = matchings.keep((i + j) % 5 > 0)  # some pairs were never compared
    if weighted:
        matchings = matchings.with_weights(rng.random(matchings.n_matches) + 0.5)
    labels = np.where((matchings.point_objects == 0) & (truth < 2), truth + 5, truth)
    labels[rng.random(len(labels)) < 0.15] = -1
    return matchings, labels.astype(np.int64)


def _chain():
    """Return objects in a row, each compared with the next, and labels that come again far away."""
    matchings, labels = _problem(5, compared=True)
    i, j = matchings.pair_objects[matchings.match_pairs].T
    matchings = matchings.keep(j - i == 1)
    labels[matchings.point_objects == 2] = -1
    return matchings, labels


PROBLEMS = {
    "partial": lambda: _problem(0),
    "partial, other": lambda: _problem(4),
    "chain": lambda: _chain(),
    "compared": lambda: _problem(8, compared=True),
    "weighted": lambda: _problem(1, weighted=True),
    "full": lambda: _problem(2, full=True),
    "full, weighted": lambda: _problem(3, full=True, weighted=True),
}


@pytest.fixture(params=sorted(PROBLEMS))
def problem(request):
    return PROBLEMS[request.param]()


@pytest.fixture(autouse=True)
def sided(monkeypatch):
    """Tell rows from columns wherever not all were compared, also if they do not differ."""
    monkeypatch.setattr(MatchTable, "sided", property(lambda table: table.partial and not table.complete))


class Literal:
    """A problem with hard labels, or soft ones U, as dictionaries and loops."""

    def __init__(self, matchings, labels=None, U=None):
        self.points = [(i, a) for i, n in enumerate(matchings.sizes.tolist()) for a in range(n)]
        self.k, self.n = matchings.n_objects, float(np.mean(matchings.sizes))
        number = {point: t for t, point in enumerate(self.points)}
        self.W, self.number = {}, {}
        weights, t = matchings.match_weights / matchings.match_weights.mean(), 0
        for (i, j), block in matchings.pairs().items():
            for a, b in block.tolist():
                ends = number[i, a], number[j, b]
                self.W[ends] = self.W[ends[::-1]] = float(weights[t])
                self.number[ends] = self.number[ends[::-1]] = t
                t += 1
        self.of = [i for i, _ in self.points]
        self.compared = {(self.of[a], self.of[b]) for a, b in self.W}
        self.partner = {(a, self.of[b]): b for a, b in self.W}
        self.partial = any(
            (a, j) not in self.partner for a, i in enumerate(self.of) for o, j in self.compared if o == i
        )
        self.complete = len(self.compared) >= 0.75 * self.k * (self.k - 1)
        self.labels = labels
        if U is None:
            U = [[float(label == c) for c in range(D)] for label in labels]
        self.U = U
        self.O = [[sum(U[a][c] for a in range(len(U)) if self.of[a] == i) for c in range(D)] for i in range(self.k)]

    def right(self, i, j):
        """Matches of block (i, j) that join equal labels."""
        return sum(
            self.U[a][c] * self.U[b][c]
            for a, b in self.W if (self.of[a], self.of[b]) == (i, j) for c in range(D)
        )  # fmt: skip

    def present(self, i, j):
        """Labels that i and j, which were compared, share."""
        return sum(self.O[i][c] * self.O[j][c] for c in range(D)) if (i, j) in self.compared else 0.0

    def totals(self):
        """Return right, present, found, matched, rows over all blocks, in both readings."""
        right = sum(self.right(i, j) for i, j in self.compared)
        present = sum(self.present(i, j) for i, j in self.compared)
        found = sum(self.U[a][c] * self.O[j][c] for a, j in self.partner for c in range(D))
        if not self.partial:
            found = present
        rows = sum(self.of.count(i) for i, _ in self.compared)
        return right, present, found, float(len(self.partner)), float(rows)

    def rates(self):
        right, present, found, matched, rows = self.totals()
        p = min((right + 1) / (present + 2), 0.999)
        r1 = min((max(found - right, 0) + 0.5) / (present + 2), 0.99 * (1 - p))
        r0 = min((max(matched - found, 0) + 0.5) / (max(rows - present, 0) + 2), 0.99)
        return p, r1, r0

    def sides(self):
        """Return u and v, each without and with a partner, from rows and columns counted one by one."""
        u, v = {}, {}
        for rates, first in ((u, True), (v, False)):
            yes, no = {0: 0.0, 1: 0.0}, {0: 0.0, 1: 0.0}
            for i, j in self.compared:
                for a in range(len(self.of)) if (i < j) == first else []:
                    b = self.partner.get((a, j)) if self.of[a] == i else None
                    if self.of[a] != i or (b is not None and self.labels[a] == self.labels[b] >= 0):
                        continue
                    has = int(self.labels[a] >= 0 and self.O[j][self.labels[a]] > 0)
                    (no if b is None else yes)[has] += 1
            for has in (0, 1):
                rates[has] = min(max((yes[has] + 0.5) / (yes[has] + no[has] + 1), 0.001), 0.999)
        return u, v

    def wrong(self, i, j):
        """Matches of block (i, j) that join different labels."""
        return sum((self.of[a], self.of[b]) == (i, j) for a, b in self.W) - self.right(i, j)

    def held(self):
        sizes = [sum(self.O[i][c] for i in range(self.k)) for c in range(D)]
        return [s for s in sizes if s > 1e-6]

    def log_odds(self, blocks=None):
        """Return α, β, γ as dictionaries over compared pairs; `blocks` is a Literal whose blocks' rates are used."""
        p, r1, r0 = self.rates()
        kappa = inf
        if blocks is not None:
            upper = [(i, j) for i, j in sorted(blocks.compared) if i < j and blocks.present(i, j) > 0]
            hits, trials = [blocks.right(*at) for at in upper], [blocks.present(*at) for at in upper]
            kappa = literal_beta_fit(hits, trials, least=0.5)[1]
        alpha, beta, gamma = {}, {}, {}
        for i, j in self.compared:
            own = p
            if isfinite(kappa):
                own = (blocks.right(i, j) + kappa * p) / (blocks.present(i, j) + kappa)
                own = min(max(own, 0.001), 0.999)
            if self.partial and not self.complete:
                (u, v), blocks_ = self.sides(), len(self.compared)
                w = sum(self.wrong(*at) for at in self.compared) / blocks_ + 0.5
                gamma[i, j] = log(1 - own) + log((1 - u[1]) / (1 - u[0])) + log((1 - v[1]) / (1 - v[0]))
                s = u if i < j else v
                beta[i, j] = gamma[i, j] + 2 * (log(s[1] / s[0]) - log((1 - s[1]) / (1 - s[0])))
                # Of two points matched with each other: log p + log w - log u_0 - log v_0 in all.
                alpha[i, j] = log(own) + log(w) - log(u[0]) - log(v[0])
                alpha[i, j] -= log(1 - own) + log(u[1] / u[0]) + log(v[1] / v[0])
                continue
            wrong = (1 - own) * r1 / (1 - p)
            alpha[i, j] = log(own) - log(wrong / self.n)
            beta[i, j] = log(wrong) - log(r0)
            gamma[i, j] = log(1 - own - wrong) - log(1 - r0) if self.partial else beta[i, j]
        return alpha, beta, gamma

    def earned(self, a, b, alpha, trust):
        """What a match of a and b is worth: α and what its weight says, never below zero; 0 without a match."""
        if (a, b) not in self.W:
            return 0.0
        return max(alpha[self.of[a], self.of[b]] + (0.0 if trust is None else trust.odds[self.number[a, b]]), 0.0)

    def near(self, i, c, without=None):
        """Objects compared with i, other than `without`, that hold label c."""
        return sum(self.O[j][c] for o, j in self.compared if o == i and j != without)

    def level(self, n, i):
        """Fifths of the objects compared with i, none of which is level -1."""
        return -1 if n < 0.5 else min(ceil(5 * n / sum(o == i for o, _ in self.compared) - 1e-9) - 1, 4)

    def sight(self):
        """Return held and cells of the five levels; an unlabelled point has a label of its own that all others miss."""
        held, cells = [0.0] * 5, [0.0] * 5
        for i in range(self.k):
            for c in range(D):
                at = self.level(self.near(i, c), i)
                if at >= 0:
                    held[at] += self.O[i][c]
                    cells[at] += 1
        for a, label in enumerate([] if self.labels is None else self.labels):
            for o, j in self.compared:
                if label < 0 and o == self.of[a]:
                    cells[self.level(1, j)] += 1
        return held, cells

    def pieces_apart(self):
        """Pieces of labels, connected by comparisons, beyond one each."""
        apart = 0
        for c in range(D):
            left = {i for i in range(self.k) if self.O[i][c]}
            pieces = 0
            while left:
                todo = {left.pop()}
                pieces += 1
                while todo:
                    i = todo.pop()
                    found = {j for j in left if (i, j) in self.compared}
                    left -= found
                    todo |= found
            apart += max(pieces - 1, 0)
        return apart

    def prior(self, i, c):
        """What taking label c earns object i by the prior."""
        s = sum(self.O[j][c] for j in range(self.k) if j != i)
        if self.complete:
            held = self.held()
            rho, kappa = literal_beta_fit(held, [float(self.k)] * len(held), least=1.0)
            rho = min(max(rho, 0.001), 0.999)
            return log(s + kappa * rho) - log(max(self.k - 1 - s, 0) + kappa * (1 - rho)) if isfinite(kappa) else 0.0
        q = [(h + 0.5) / (n + 1) for h, n in zip(*self.sight(), strict=True)]
        at = self.level(self.near(i, c), i)
        value = log(q[at]) - log(1 - q[at]) if at >= 0 else 0.0
        fresh = sum(1 for o, j in self.compared if o == i and not self.O[j][c] and not self.near(j, c, without=i))
        return value + fresh * log(1 - q[0]) - (log(D) if at < 0 and s > 0 else 0.0)

    def score(self, a, c, odds, trust=None):
        """S[a, c] as in the documentation of the model, its prior included."""
        alpha, beta, gamma = odds
        i, total = self.of[a], 0.0

        def X(point, other):
            pair = self.of[point], other
            return 0.0 if pair not in self.compared else (beta if (point, other) in self.partner else gamma)[pair]

        for b in range(len(self.of)):
            total += self.earned(a, b, alpha, trust) * self.U[b][c]
            total += 0.5 * X(b, i) * self.U[b][c]
        for j in range(self.k):
            total += 0.5 * X(a, j) * self.O[j][c]
        return total + self.prior(i, c)

    def scores(self, odds, trust=None):
        return np.array([[self.score(a, c, odds, trust) for c in range(D)] for a in range(len(self.of))])


def literal_beta_fit(hits, trials, *, least):
    """Match mean and variance of the rates: Var = p(1-p)/(κ+1) beyond the binomial noise, weighted by trials."""
    if not trials:
        return 0.5, inf
    total = sum(trials)
    p = sum(hits) / total
    spread = sum(t / total * (h / t - p) ** 2 for h, t in zip(hits, trials, strict=True))
    noise = sum(t / total * p * (1 - p) / t for t in trials)
    excess = spread - noise
    return p, inf if excess <= 1e-6 else max(p * (1 - p) / excess - 1, least)


def literal_beta_binomial(hits, trials, *, least):
    p, kappa = literal_beta_fit(hits, trials, least=least)
    a, b = kappa * p, kappa * (1 - p)

    def beta(x, y):
        return lgamma(x) + lgamma(y) - lgamma(x + y)

    if isfinite(kappa) and a > 0 and b > 0:
        return sum(beta(h + a, t - h + b) - beta(a, b) for h, t in zip(hits, trials, strict=True))
    return sum(
        (h * log(p) if h else 0) + ((t - h) * log(1 - p) if t - h else 0) for h, t in zip(hits, trials, strict=True)
    )


def literal_profile(x, y):
    """The maximum over s of x log s + y log(1 - s), at s = x / (x + y)."""
    s = x / (x + y) if x + y else 0.5
    return (x * log(s) if x else 0.0) + (y * log(1 - s) if y else 0.0)


def literal_likelihood(matchings, labels):
    """Right matches of blocks and holders of labels beta-binomial; wrongly matched rows multinomial, read twice."""
    it = Literal(matchings, labels)
    right, present, found, matched, rows = it.totals()
    upper = [(i, j) for i, j in sorted(it.compared) if i < j and it.present(i, j) > 0]
    value = literal_beta_binomial([it.right(*at) for at in upper], [it.present(*at) for at in upper], least=0.5)
    if it.complete:
        held = it.held() + [1.0] * int((labels < 0).sum())
        value += literal_beta_binomial(held, [float(it.k)] * len(held), least=1.0)
    else:
        value += sum(literal_profile(h, n - h) for h, n in zip(*it.sight(), strict=True)) - it.pieces_apart() * log(D)
    weights = 0.0 if matchings.weights is None else literal_trust(matchings, labels)[1]
    if it.partial and not it.complete:
        return value + literal_sides(it) + weights
    wrong, stray = max(found - right, 0.0), max(matched - found, 0.0)
    rest = literal_profile(wrong, max(present - found, 0.0)) + literal_profile(stray, max(rows - present - stray, 0.0))
    rest -= (wrong + stray) * log(it.n)  # which of the n points it was
    return value + 0.5 * rest + weights


def literal_sides(it):
    """Rows and columns, with a partner or not, matched wrongly or not, and w! ways to pair them off in each block."""
    value = -sum(lgamma(it.wrong(i, j) + 1) for i, j in it.compared if i < j)
    for first in (True, False):
        for has in (0, 1):
            n = {True: 0, False: 0}
            for a, (i, label) in enumerate(zip(it.of, it.labels, strict=True)):
                for j in (j for o, j in it.compared if o == i and (i < j) == first):
                    b = it.partner.get((a, j))
                    right = b is not None and it.labels[b] == label >= 0
                    if (label >= 0 and it.O[j][label] > 0) == has and not right:
                        n[b is not None] += 1
            value += literal_profile(n[True], n[False])
    return value


def literal_trust(matchings, labels):
    """Return slope and gain of the logistic regression of "right" on the normal score of the weight's rank."""
    a, b = labels[matchings.endpoints].T
    y = (a == b) & (a >= 0)
    z = norm.ppf((rankdata(matchings.weights) - 0.5) / len(y))

    def value(x, base=0.0):
        return -np.sum(np.log1p(np.exp(np.where(y, -1, 1) * (x[0] + x[1] * z)))) - 0.5 * base * x[1] ** 2

    best = minimize(lambda x: -value(x, 1.0), [0.0, 0.1], bounds=[(None, None), (0, 4)], tol=1e-14).x
    share = y.mean()
    return best, value(best) - len(y) * (share * log(share) + (1 - share) * log(1 - share))


def test_counts(problem):
    matchings, labels = problem
    it, counts = Literal(matchings, labels), block_counts(MatchTable.of(matchings, D), labels)
    pairs = matchings.pair_objects.tolist()
    assert counts.right.tolist() == [it.right(i, j) for i, j in pairs]
    assert counts.present.tolist() == [it.present(i, j) for i, j in pairs]
    right, present, found, matched, rows = it.totals()
    assert (2 * counts.right.sum(), 2 * counts.present.sum()) == (right, present)
    assert (counts.found, counts.matched, counts.rows) == (found, matched, rows)
    np.testing.assert_allclose(counts.rates, it.rates(), rtol=1e-12)
    held = it.held()
    np.testing.assert_allclose(
        counts.popularity, literal_beta_fit(held, [float(it.k)] * len(held), least=1.0), rtol=1e-9
    )
    assert (counts.sight is None) == it.complete
    if counts.sight is not None:
        assert [counts.sight.held.tolist(), counts.sight.cells.tolist()] == list(it.sight())
        assert counts.sight.apart == it.pieces_apart()


def test_trust_in_weights(problem):
    matchings, labels = problem
    trust = block_counts(MatchTable.of(matchings, D), labels).trust
    assert (trust is None) == (matchings.weights is None)
    if trust is not None:
        (intercept, slope), gain = literal_trust(matchings, labels)
        z = norm.ppf((rankdata(matchings.weights) - 0.5) / matchings.n_matches)
        a, b = labels[matchings.endpoints].T
        share = (((a == b) & (a >= 0)).sum() + 1) / (len(a) + 2)
        expected = intercept + slope * z - log(share / (1 - share))
        np.testing.assert_allclose(trust.odds, expected, atol=2e-3)
        assert trust.gain == pytest.approx(gain, abs=1e-3)


def test_some_problem_has_pieces_apart_and_some_weights_count():
    made = [make() for make in PROBLEMS.values()]
    assert max(Literal(m, labels).pieces_apart() for m, labels in made if not Literal(m, labels).complete) > 0
    assert max(literal_trust(m, labels)[0][1] for m, labels in made if m.weights is not None) > 0.05


@pytest.mark.parametrize("seed", range(4))
def test_beta_fit(seed):
    rng = np.random.default_rng(seed)
    trials = rng.integers(1, 9, size=12).astype(float)
    hits = rng.binomial(trials.astype(int), rng.beta(*[(1, 1), (6, 3), (0.2, 0.2), (50, 50)][seed], size=12)).astype(
        float
    )
    expected = literal_beta_fit(hits.tolist(), trials.tolist(), least=0.5)
    assert beta_fit(hits, trials, least=0.5) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("with_blocks", [False, True])
def test_scores_of_hard_labels(problem, with_blocks):
    matchings, labels = problem
    table, it = MatchTable.of(matchings, D), Literal(matchings, labels)
    counts = block_counts(table, labels)
    rates = log_odds(table, counts, counts if with_blocks else None)
    expected = it.scores(it.log_odds(it if with_blocks else None), counts.trust)
    np.testing.assert_allclose(State(table, labels, rates).scores(0, it.k), expected, atol=1e-9)
    U = table.one_hot(labels)
    np.testing.assert_allclose(rates.scores(U, table.matrix(rates.right) @ U), expected, atol=1e-9)


def test_the_blocks_of_some_problem_differ_and_so_do_its_labels():
    # Otherwise the two tests above would never see a finite concentration.
    found = []
    for make in (make for name, make in PROBLEMS.items() if name in ("compared", "full", "full, weighted", "weighted")):
        matchings, labels = make()
        counts = block_counts(MatchTable.of(matchings, D), labels)
        found.append((beta_fit(*counts.reliability, least=0.5)[1], counts.popularity[1]))
    assert np.isfinite(found).any(axis=0).all()


def test_rates_of_soft_labels(problem):
    matchings, labels = problem
    table = MatchTable.of(matchings, D)
    rng = np.random.default_rng(0)
    U = 0.7 * table.one_hot(labels) + 0.3 * rng.dirichlet(np.ones(D), size=len(labels))
    it = Literal(matchings, U=U.tolist())
    # Soft labels: every block has the common rate.
    right = sum(U[a, c] * U[b, c] for a, b in it.W for c in range(D))
    counts = soft_block_counts(table, U, table.matrix(np.ones(len(table.indices))) @ U)
    _, present, found, matched, rows = it.totals()
    assert 2 * counts.right.sum() == pytest.approx(right, rel=1e-12)
    for (i, j), value in zip(matchings.pair_objects.tolist(), counts.right, strict=True):
        assert value == pytest.approx(right / present * it.present(i, j), rel=1e-9)
    assert (counts.found, counts.matched, counts.rows) == pytest.approx((found, matched, rows), rel=1e-12)


def test_log_likelihood(problem):
    matchings, labels = problem
    table = MatchTable.of(matchings, D)
    close = 1e-10 if matchings.weights is None else 1e-5  # the fit of weights by another optimiser
    assert log_likelihood(table, labels) == pytest.approx(literal_likelihood(matchings, labels), rel=close)
    rng = np.random.default_rng(5)
    other = np.concatenate([rng.permutation(D)[:n] for n in matchings.sizes])
    assert log_likelihood(table, other) == pytest.approx(literal_likelihood(matchings, other), rel=close)


def test_relabelling_an_object_finds_the_best_of_all_assignments(problem):
    matchings, labels = problem
    table = MatchTable.of(matchings, D)
    rates = log_odds(table, block_counts(table, labels))
    state = State(table, labels.copy(), rates)
    it = Literal(matchings, labels)
    S = it.scores(it.log_odds(), block_counts(table, labels).trust)
    i = 2
    rows = [a for a, o in enumerate(it.of) if o == i]
    best = max(sum(S[a, c] for a, c in zip(rows, choice, strict=True)) for choice in permutations(range(D), len(rows)))
    state.relabel(i)
    assert sum(S[a, state.labels[a]] for a in rows) == pytest.approx(best, rel=1e-9)
    # The sums that are kept up to date are those of the new labels.
    np.testing.assert_allclose(state.scores(0, it.k), State(table, state.labels, rates).scores(0, it.k), atol=1e-9)


def test_on_a_tie_nothing_moves():
    # Point 1 of both objects has no match: without weight on cluster size, labels 1 and 2 are worth the same to it.
    matchings = Matchings.from_pairs({(0, 1): [[0, 0]]}, [2, 2])
    table = MatchTable.of(matchings, 4)
    for labels in ([3, 2, 3, 1], [3, 1, 3, 2], [2, 3, 2, 0]):
        start = np.array(labels)
        rates = log_odds(table, block_counts(table, start))
        flat = type(rates)(table, rates.match, None, np.zeros((2, 2)))
        assert State(table, start, flat).scores(0, 2)[1].tolist() == [0, 0, 0, 0]
        assert not State(table, start.copy(), flat).relabel(0)
        assert ascend(table, start, flat)[0].tolist() == labels


def test_of_two_labellings_worth_the_same_an_object_keeps_the_one_it_has():
    # Object 1 speaks for one labelling of object 0, object 2 for the other, equally loud.
    matchings = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]], (0, 2): [[0, 1], [1, 0]]}, [2, 2, 2])
    table = MatchTable.of(matchings, 2)
    for labels in ([0, 1, 0, 1, 0, 1], [1, 0, 0, 1, 0, 1]):
        state = State(table, np.array(labels), log_odds(table, block_counts(table, np.array(labels))))
        S = state.scores(0, 1)
        assert S[0, 0] + S[1, 1] == pytest.approx(S[0, 1] + S[1, 0])
        assert not state.relabel(0)


def test_withdrawn_points_are_those_without_support_and_with_a_score_not_above_zero(problem):
    matchings, labels = problem
    it = Literal(matchings, labels)
    _, beta, gamma = it.log_odds()
    expected = labels.copy()
    for a, label in enumerate(labels):
        if label < 0 or any(labels[b] == label for (x, b) in it.W if x == a):
            continue
        # The evidence about presence, without the prior.
        total, i = 0.0, it.of[a]
        for j in range(it.k):
            if (i, j) in it.compared:
                total += 0.5 * (beta if (a, j) in it.partner else gamma)[i, j] * it.O[j][label]
        for b in range(len(labels)):
            if (it.of[b], i) in it.compared and labels[b] == label:
                total += 0.5 * (beta if (b, i) in it.partner else gamma)[it.of[b], i]
        if total <= 0:
            expected[a] = -1
    assert withdraw(MatchTable.of(matchings, D), labels).tolist() == expected.tolist()


def test_some_problem_has_points_to_withdraw():
    taken = [(labels != withdraw(MatchTable.of(m, D), labels)).sum() for m, labels in (f() for f in PROBLEMS.values())]
    assert max(taken) > 0


def test_gains_of_joining_labels(problem):
    matchings, labels = problem
    table, it = MatchTable.of(matchings, D), Literal(matchings, labels)
    alpha, beta, gamma = it.log_odds()
    counts = block_counts(table, labels)
    trust = counts.trust

    def X(point, other):
        pair = it.of[point], other
        return 0.0 if pair not in it.compared else (beta if (point, other) in it.partner else gamma)[pair]

    def gain(c, e):
        """What all pairs of points of the two labels earn by being together, in both readings."""
        return sum(
            2 * it.earned(a, b, alpha, trust) + X(a, it.of[b]) + X(b, it.of[a])
            for a in range(len(labels)) if labels[a] == c
            for b in range(len(labels)) if labels[b] == e
        )  # fmt: skip

    n = [sum(it.O[i][c] for i in range(it.k)) for c in range(D)]
    allowed = {
        (c, e): gain(c, e) for c in range(D) for e in range(D)
        if c != e and n[c] and n[e] and 3 * sum(it.O[i][c] * it.O[i][e] for i in range(it.k)) <= min(n[c], n[e])
    }  # fmt: skip
    best = {c: max((g, -e) for (x, e), g in allowed.items() if x == c) for c in {c for c, _ in allowed}}
    mutual = sorted(
        (-best[c][0], c, -best[c][1]) for c in best if best[c][0] > 0 and best[-best[c][1]][1] == -c and c < -best[c][1]
    )
    expected = [(e, c) if n[c] < n[e] else (c, e) for _, c, e in mutual]
    assert [tuple(pair) for pair in _pairs(table, labels, counts, None).tolist()] == expected


def test_some_problem_has_labels_to_join():
    found = []
    for make in PROBLEMS.values():
        matchings, labels = make()
        table = MatchTable.of(matchings, D)
        found.append(len(_pairs(table, labels, block_counts(table, labels), None)))
    assert max(found) > 0


def test_of_labels_of_equal_size_the_first_keeps_its_number():
    table = MatchTable.of(Matchings.from_labels([0] * 6, [1] * 6), 3)
    for labels in ([0, 0, 0, 1, 1, 1], [2, 2, 2, 0, 0, 0]):
        pairs = _pairs(table, np.array(labels), block_counts(table, np.zeros(6, dtype=np.int64)), None)
        assert pairs.tolist() == [sorted(set(labels))]


def test_joined_labels_stay_apart_in_objects_that_hold_both():
    table = MatchTable.of(Matchings.from_labels([0, 1, 0, 2, 1, 0], [2, 2, 1, 1]), 3)
    assert _joined(table, np.array([0, 1, 2, -1, 1, 0]), np.array([[0, 1]])).tolist() == [0, 1, 2, -1, 0, 0]


def test_sinkhorn_scales_rows_to_one_and_only_full_columns():
    # One object whose points want the same label, and one at peace: it keeps its softmax.
    table = MatchTable.of(Matchings.from_labels([0, 1, 0, 1], [2, 2]), 3)
    S = np.array([[4.0, 1.0, 0.0], [5.0, 0.0, 0.5], [3.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    U = sinkhorn(S.copy(), table, max_iter=2000, tol=1e-12)
    for row in (2, 3):
        weights = [exp(x) for x in S[row]]
        np.testing.assert_allclose(U[row], [w / sum(weights) for w in weights])
    columns = [1.0, 1.0, 1.0]
    for _ in range(20_000):  # rows scaled to one, columns lowered to one: the literal iteration
        rows = [1 / sum(exp(S[a, c]) * columns[c] for c in range(3)) for a in (0, 1)]
        columns = [min(1.0, 1 / sum(exp(S[a, c]) * rows[a] for a in (0, 1))) for c in range(3)]
    expected = [[exp(S[a, c]) * rows[a] * columns[c] for c in range(3)] for a in (0, 1)]
    np.testing.assert_allclose(U[:2], expected, rtol=1e-5)


def test_the_first_round_of_the_mean_field_goes_half_way(problem):
    matchings, labels = problem
    table = MatchTable.of(matchings, D)
    U = table.one_hot(labels)
    it = Literal(matchings, labels)
    right = sum(1 for a, b in it.W if labels[a] == labels[b] >= 0)
    counts = soft_block_counts(table, U, table.matrix(np.ones(len(table.indices))) @ U)
    assert 2 * counts.right.sum() == pytest.approx(right)
    rates = log_odds(table, counts if matchings.weights is None else block_counts(table, labels))
    target = sinkhorn(rates.scores(U, table.matrix(rates.right) @ U), table)
    found, rounds = mean_field(table, labels, max_iter=1)
    assert rounds == 1
    np.testing.assert_allclose(found, (U + target) / 2, atol=1e-12)


def test_sweeps_are_counted():
    matchings, truth = datasets.synthetic(5, 12, 1.0, 0.1, rng=0)
    table = MatchTable.of(matchings, 5)
    rates = log_odds(table, block_counts(table, truth))
    assert ascend(table, truth, rates)[1] == 1  # one look, and nobody wants another label
    assert refine(table, truth)[1] == 1
    other = truth.copy()
    other[:5] = truth[[1, 0, 2, 3, 4]]
    assert ascend(table, other, rates)[1] == 2  # one that repairs, one that finds nothing
    assert ascend(table, other, rates, max_sweeps=1)[1] == 1
    assert refine(table, other)[1] == 3  # and one more with the rates of the repaired labels


@pytest.mark.parametrize("seed", range(8))
def test_assignment_is_the_best_of_all_choices_of_different_columns(seed):
    rng = np.random.default_rng(seed)
    n, d = (3, 3) if seed % 2 else (3, 5)
    S = rng.integers(0, 4, size=(n, d)).astype(float) + 0.01 * rng.random((n, d))
    S[:, 0] += 2 * (seed % 3)  # several points want the same label
    best = max(permutations(range(d), n), key=lambda choice: sum(S[a, c] for a, c in enumerate(choice)))
    assert tuple(assign(S).tolist()) == best


def test_points_that_want_the_same_label_do_not_both_get_it():
    assert assign(np.array([[3.0, 1.0, 0.0], [3.0, 0.0, 2.0], [0.0, 9.0, 0.0]])).tolist() == [0, 2, 1]


@pytest.mark.parametrize("seed", range(40))
def test_objects_that_fit_no_better_than_chance_stay_out(seed):
    """Share below half the median, and blocks worth less than the choice of labels, as the documentation says."""
    rng = np.random.default_rng(seed)
    k, n, rate = 7, int(rng.integers(3, 7)), rng.uniform(0.4, 1)
    labels = np.concatenate([rng.permutation(n) for _ in range(k)])
    blocks = {pair: rows.copy() for pair, rows in Matchings.from_labels(labels, [n] * k).pairs().items()}
    for j in range(1, k):
        moved = np.flatnonzero(rng.random(n) < rate)
        blocks[0, j][moved, 1] = rng.permutation(blocks[0, j][moved, 1])
    matchings = Matchings.from_pairs(blocks, [n] * k)
    table = MatchTable.of(matchings, n)
    agrees = {
        pair: sum(labels[n * pair[0] + x] == labels[n * pair[1] + y] for x, y in rows) for pair, rows in blocks.items()
    }
    chance = min(exp(-table.spread), 0.5)

    def worth(right):
        share = right / n
        if share <= chance:
            return 0.0
        wrong = (n - right) * log((1 - share) / (1 - chance)) if right < n else 0.0
        return right * log(share / chance) + wrong

    mine = [[right for pair, right in agrees.items() if i in pair] for i in range(k)]
    shares = [sum(rights) / (n * (k - 1)) for rights in mine]
    choices = lgamma(n + 1)
    out = [
        share < 0.5 * np.median(shares) and sum(map(worth, rights)) < choices
        for share, rights in zip(shares, mine, strict=True)
    ]
    found = leave_out(table, labels)
    np.testing.assert_array_equal(found, np.where(np.repeat(out, n), -1, labels))


@pytest.mark.parametrize("tol", [0.05, 0.01])
def test_the_mean_field_ends_when_labels_move_little(tol):
    matchings, truth = datasets.synthetic(6, 8, 0.8, 0.3, rng=3)
    table = MatchTable.of(matchings, 6)
    start = np.where(np.arange(len(truth)) % 4, truth, (truth + 1) % 6)
    _, rounds = mean_field(table, start, max_iter=200, tol=tol)
    made = [table.one_hot(start), *(mean_field(table, start, max_iter=n, tol=0.0)[0] for n in range(1, rounds + 1))]
    moved = [np.abs(after - before).sum() / len(truth) for before, after in pairwise(made)]  # half of the way, twice
    assert moved[-1] <= tol < min(moved[:-1])
    assert rounds > 2
