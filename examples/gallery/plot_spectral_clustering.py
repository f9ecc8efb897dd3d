"""
Spectral clustering by the sparse rotation, against scikit-learn
================================================================

The leading eigenvectors of a graph's normalised adjacency matrix span the space of its clusters, in some basis. In
the *sparse* basis every column is one cluster, and a row's largest entry is its label: Problem (1) of the paper. It
needs no k-means and no random start.

Is that better than what people use? Ten data sets, five seeds each, adjusted Rand index (1 is perfect). The answer is
no: it is about as good as the others, no better than the best of them on average, `discretize`. That is why this
package has no clustering estimator.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn import datasets, neighbors, preprocessing
from sklearn.cluster import SpectralClustering
from sklearn.manifold import spectral_embedding
from sklearn.metrics import adjusted_rand_score

from stiefelsync import rotate

# %%
# The data
# --------
# Points become graphs by their ten nearest neighbours; the stochastic block models are graphs already.


def points(seed: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, points and true clusters of eight sets of points."""
    yield "moons", *datasets.make_moons(300, noise=0.07, random_state=seed)
    yield "circles", *datasets.make_circles(300, noise=0.06, factor=0.5, random_state=seed)
    yield "blobs", *datasets.make_blobs(300, centers=8, cluster_std=1.3, random_state=seed)
    yield "varied", *datasets.make_blobs(300, centers=5, cluster_std=[0.5, 1, 1.5, 2.5, 1], random_state=seed)
    chosen = np.random.default_rng(seed)
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        some = chosen.permutation(len(X))[: int(0.8 * min(len(X), 500))]
        yield name, X[some], y[some]


def block_model(seed: int, clusters: int, size: int, inside: float, between: float) -> tuple[Any, Any]:
    """Return a random graph whose clusters differ in size by up to a factor of four."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(clusters), rng.integers(size // 2, 2 * size, clusters))
    edges = np.triu(rng.random((len(y), len(y))) < np.where(y[:, None] == y, inside, between), 1)
    return sparse.csr_matrix((edges | edges.T).astype(float)), y


def graphs(seed: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, adjacency matrix and true clusters of all ten problems."""
    for name, X, y in points(seed):
        near = neighbors.kneighbors_graph(preprocessing.scale(X), 10, include_self=True)
        yield name, (near + near.T) / 2, y
    yield "10 blocks", *block_model(seed, 10, 30, 0.3, 0.03)
    yield "25 blocks", *block_model(seed, 25, 24, 0.4, 0.02)


# %%
# The comparison
# --------------


def by_rotation(A: Any, k: int, seed: int) -> Any:
    """Return labels from the sparse basis of the embedding."""
    embedding = spectral_embedding(A, n_components=k, eigen_solver="arpack", random_state=seed, drop_first=False)
    return rotate(np.linalg.qr(embedding)[0]).argmax(axis=1)


RIVALS = ("kmeans", "discretize", "cluster_qr")
warnings.filterwarnings("ignore", message="Graph is not fully connected")  # some are not, for all methods alike
table: dict[str, dict[str, list[float]]] = {}
seconds = dict.fromkeys((*RIVALS, "rotate"), 0.0)
for seed in range(5):
    for name, A, y in graphs(seed):
        k = len(np.unique(y))
        for method in seconds:
            start = time.process_time()
            if method == "rotate":
                labels = by_rotation(A, k, seed)
            else:
                rival = SpectralClustering(k, affinity="precomputed", assign_labels=method, random_state=seed)
                labels = rival.fit_predict(A)
            seconds[method] += time.process_time() - start
            table.setdefault(name, {}).setdefault(method, []).append(adjusted_rand_score(y, labels))

print("mean adjusted Rand index of five seeds   " + "  ".join(f"{m:>10}" for m in seconds))
for name, row in table.items():
    print(f"{name:40} " + "  ".join(f"{np.mean(row[m]):10.3f}" for m in seconds))
mean = {m: np.mean([row[m] for row in table.values()]) for m in seconds}
print(f"{'mean':40} " + "  ".join(f"{mean[m]:10.3f}" for m in seconds))
print(f"{'processor seconds, embedding included':40} " + "  ".join(f"{seconds[m]:10.2f}" for m in seconds))

# %%
# What the rotation does
# ----------------------
# The embedding of the graph with 20 blocks, in the eigenvectors' basis and in the sparse one.

A, y = block_model(0, 20, 40, 0.25, 0.02)
V = np.linalg.qr(spectral_embedding(A, n_components=20, eigen_solver="arpack", random_state=0, drop_first=False))[0]
figure, axes = plt.subplots(1, 2, figsize=(8, 4.5), layout="constrained", sharey=True)
for axis, name, basis in ((axes[0], "eigenvectors", V), (axes[1], "rotated", rotate(V))):
    axis.imshow(np.abs(basis), aspect="auto", cmap="Blues", vmax=0.2, interpolation="nearest")
    axis.set(title=name, xlabel="column")
axes[0].set_ylabel("vertex, by true cluster")
plt.show()
