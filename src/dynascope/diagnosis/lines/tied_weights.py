"""The line on tied weights: whether a parameter is an untied copy of another one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import counted

__all__ = ["tied_weights"]

_SMALL = 16  # smaller parameters, such as the biases of small layers, can be equal by design
_KEPT = 1e-6  # relative difference of displacements below which two parameters were kept equal during training
_THEORY = (
    "A tied weight is one parameter with the sum of both gradients. An untied copy is trained separately and adds a "
    "symmetry with its own conservation law. Domain: any network. Source: Kunin et al., arXiv:2012.04728."
)


def tied_weights(run: RunFacts) -> Line:
    """Report pairs of parameters with identical initial weights that were trained as separate parameters."""
    topic = "tied weights"
    if not run.initial_weights:
        sentence = "The initial weights are not available: diagnose the folder that the Recorder wrote."
        return Line(topic, "not measured", sentence, theory=_THEORY, weight=0)
    pairs = [pair for pair in _equal_pairs(run) if not _kept_equal(run, *pair)]
    if not pairs:
        sentence = "No two parameters started as copies of each other."
        return Line(topic, "no copies", sentence, 0.0, 0.0, _THEORY, weight=0)
    one, other = pairs[0]
    count = "" if len(pairs) == 1 else f" ({counted(len(pairs))} such pairs)"
    sentence = f"{one!r} and {other!r} started with identical weights, but were trained as separate parameters{count}."
    action = (
        f"If they should be tied, use the same parameter object in both places; otherwise draw {other!r} independently "
        "(`torch.nn.TransformerEncoder`, for example, copies one layer)."
    )
    return Line(topic, "copied", sentence, float(len(pairs)), 0.0, _THEORY, action, weight=3)


def _equal_pairs(run: RunFacts) -> Iterator[tuple[str, str]]:
    """Yield the pairs of parameters with bit-identical initial weights, also if one of them is transposed.

    Parameters with constant entries, such as biases and gains, are omitted.
    """
    drawn = {
        name: each for name, each in run.initial_weights.items() if each.size >= _SMALL and each.min() != each.max()
    }
    for (one, a), (other, b) in itertools.combinations(drawn.items(), 2):
        if _equal(a, b) or (a.ndim == 2 and _equal(a.T, b)):
            yield one, other


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    # The first entries of most arrays differ, so few arrays are compared completely.
    return a.shape == b.shape and bool(a.flat[0] == b.flat[0]) and np.array_equal(a, b)


def _kept_equal(run: RunFacts, one: str, other: str) -> bool:
    """Return whether both parameters moved by the same distance, because the training loop copies the weights."""
    moved = run.known("displacement")
    if moved is None or not {one, other} <= {*map(str, moved["parameter"].to_numpy())}:
        return False
    a, b = (float(moved.sel(parameter=name)[-1]) for name in (one, other))
    return abs(a - b) <= _KEPT * max(a, b)
