"""
Model merging: which neuron is which in five networks
=====================================================

Networks trained from different starts learn similar features in different order. Before their weights can be averaged
their hidden neurons must be matched. Matching in pairs is not consistent: going round from A to B to C and back to A
does not return to the same neuron. Five small networks are trained here on the same task, their hidden neurons
matched in pairs by the correlation of their activations, and made consistent.

There is no true answer, so the judge is what people want it for: the test accuracy of the averaged network.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from stiefelsync import Matchings, cycle_error, synchronise

NETWORKS, HIDDEN = 5, 48

X, y = load_digits(return_X_y=True)
X = X / 16
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)


def train(seed: int) -> MLPClassifier:
    """Train a network with one hidden layer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # forty epochs are enough
        network = MLPClassifier((HIDDEN,), max_iter=40, random_state=seed, learning_rate_init=0.01)
        return network.fit(X_train, y_train)


def hidden(network: MLPClassifier) -> Any:
    """Return the activations of the hidden layer on the training data, standardised."""
    H = np.maximum(X_train @ network.coefs_[0] + network.intercepts_[0], 0)
    return (H - H.mean(axis=0)) / (H.std(axis=0) + 1e-6)


networks = [train(seed) for seed in range(NETWORKS)]
activations = [hidden(network) for network in networks]
scores = {
    (i, j): activations[i].T @ activations[j] / len(X_train) for i, j in itertools.combinations(range(NETWORKS), 2)
}
pairwise = Matchings.from_scores(scores, threshold=-1)  # every neuron gets a partner
print(f"{cycle_error(pairwise).value:.0%} of the cycles of three networks do not close")

# %%
# One place for every neuron
# --------------------------
# Every network has the same 48 neurons: full permutations. The correlations count as weights.

result = synchronise(pairwise, HIDDEN)
print(f"{cycle_error(result.matchings()).value:.0%} after synchronisation")

# %%
# Averaging
# ---------


def permuted(network: MLPClassifier, order: Any) -> list[Any]:
    """Return the weights of a network with its hidden neurons in another order."""
    (A, B), (a, b) = network.coefs_, network.intercepts_
    return [A[:, order], a[order], B[order], b]


def accuracy(weights: list[Any]) -> float:
    """Return the share of right answers on the test data."""
    A, a, B, b = weights
    return float(np.mean((np.maximum(X_test @ A + a, 0) @ B + b).argmax(axis=1) == y_test))


def average(orders: list[Any]) -> float:
    """Return the test accuracy of the network averaged over all, neurons in these orders."""
    parts = [permuted(network, order) for network, order in zip(networks, orders, strict=True)]
    return accuracy([np.mean(part, axis=0) for part in zip(*parts, strict=True)])


labels = result.labels.reshape(NETWORKS, HIDDEN)
to_first = [np.arange(HIDDEN), *(pairwise.pair(0, j)[:, 1] for j in range(1, NETWORKS))]
figures = {
    "one network, mean of five": float(np.mean([accuracy(permuted(n, np.arange(HIDDEN))) for n in networks])),
    "average, neurons as they come": average([np.arange(HIDDEN)] * NETWORKS),
    "average, all matched to the first": average(to_first),
    "average, made consistent": average([np.argsort(row) for row in labels]),
}
for name, value in figures.items():
    print(f"{name:36} {value:.3f}")

figure, axis = plt.subplots(figsize=(7, 2.6), layout="constrained")
axis.barh(list(figures)[::-1], list(figures.values())[::-1], color=["tab:blue", "0.6", "0.8", "0.4"])
axis.set(xlabel="test accuracy on digits", xlim=(0, 1))
plt.show()
