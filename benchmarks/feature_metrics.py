"""Feature metrics of a stream of batches: memory, and time relative to one matrix product and to a dense computation.

The stream has 50 000 samples with 512 features and 10 classes. The benchmark measures the memory beyond one batch, and
the time relative to HᵀH summed over the same batches. The dense computation follows the definitions, with operators as
n × n matrices, their eigenfunctions and their centred alignment. Run `python benchmarks/feature_metrics.py`.
"""

from __future__ import annotations

import functools
import operator
import time
import tracemalloc
from collections.abc import Iterable, Iterator

import harness
import numpy as np

from dynascope.probes.features import FeatureMetrics, feature_metrics, feature_moments

SAMPLES, FEATURES, CLASSES, BATCH = 50_000, 512, 10, 1000
DENSE_SAMPLES = 4000
MEMORY, PRODUCTS = 100e6, 3.0  # targets: bytes beyond one batch, and time relative to HᵀH

Batch = tuple[np.ndarray, np.ndarray, np.ndarray]


def main() -> None:
    extra, held = peak_memory()
    print(f"{extra / 1e6:.0f} MB beyond one batch of {held / 1e6:.0f} MB (target: under {MEMORY / 1e6:.0f} MB)")
    ours, one = seconds(list(stream(SAMPLES)))
    print(f"{ours:.3f} s, {ours / one:.2f} times the {one:.3f} s of HᵀH (target: at most {PRODUCTS:.0f} times)")

    few = list(stream(DENSE_SAMPLES))
    whole = tuple(np.concatenate(each) for each in zip(*few, strict=True))
    mine, theirs = harness.compare("feature_metrics", lambda: metrics(few), lambda: dense(*whole), target=50, repeats=1)
    for name, value in theirs.items():
        print(f"{name}: the results differ by at most {np.max(np.abs(getattr(mine, name) - value)):.0e}")


def metrics(batches: Iterable[Batch]) -> FeatureMetrics:
    return feature_metrics(functools.reduce(operator.add, (feature_moments(*batch) for batch in batches)))


def seconds(batches: list[Batch]) -> tuple[float, float]:
    """Return the median times of the metrics and of the product, measured alternately."""
    taken = []
    for _ in range(5):
        times = [time.perf_counter()]
        for run in (metrics, product):
            run(batches)
            times.append(time.perf_counter())
        taken.append(np.diff(times))
    ours, one = np.median(taken, axis=0)
    return float(ours), float(one)


def product(batches: Iterable[Batch]) -> np.ndarray:
    return functools.reduce(operator.iadd, (h.T @ h for h, _, _ in batches))


def dense(features: np.ndarray, outputs: np.ndarray, labels: np.ndarray) -> dict:
    n = len(features)
    kernel = features @ features.T / n
    intensity, e = np.linalg.eigh(kernel)
    intensity, e = intensity[: -FEATURES - 1 : -1], e[:, : -FEATURES - 1 : -1]
    projectors = [g @ np.linalg.pinv(g) for g in (np.eye(CLASSES)[labels], outputs)]
    shares = [np.einsum("ik,ik->k", e, projector @ e) / CLASSES for projector in projectors]
    centring = np.eye(n) - 1 / n
    one, two = centring @ kernel @ centring, centring @ projectors[1] @ centring
    kappa = 1 - np.sum(one * two) / np.linalg.norm(one) / np.linalg.norm(two)
    return {"intensity": intensity, "quality": shares[0], "utilization": shares[1], "kappa_cka": kappa}


def stream(samples: int) -> Iterator[Batch]:
    """Yield random ReLU features of clustered inputs, whose spectrum decreases over several orders of magnitude."""
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(CLASSES, 32))
    first, second = draw.normal(size=(32, FEATURES)), draw.normal(size=(FEATURES, CLASSES)) / FEATURES
    labels = np.arange(BATCH) % CLASSES
    for _ in range(samples // BATCH):
        h = np.maximum((centres[labels] + draw.normal(size=(BATCH, 32))) @ first, 0)
        yield h, h @ second, labels


def peak_memory() -> tuple[int, int]:
    """Return the peak memory in bytes beyond one batch, and the memory of drawing and storing a batch."""
    tracemalloc.start()
    for _ in stream(BATCH):
        pass
    _, held = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    metrics(stream(SAMPLES))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - held, held


if __name__ == "__main__":
    main()
