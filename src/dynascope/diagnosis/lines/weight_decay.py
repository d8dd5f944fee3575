"""The line on weight decay: whether some weight matrices have none while others have it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import rounded

__all__ = ["weight_decay"]

_LISTED = 3  # parameters named in a sentence
# Embeddings and class tokens are often excluded from weight decay, like biases and gains of normalisation layers.
_EMBEDDING = re.compile(r"emb|(^|[._])(wte|wpe|pos|cls)([._]|$)|cls_token|class_token", re.IGNORECASE)
_THEORY = (
    "If two layers can be rescaled against each other, as in ReLU networks, decay of only one of them moves the norm "
    "to the other layer and leaves the function unregularised; with equal decay, the balance of their norms decays. "
    "Domain: SGD, layers without normalisation in between. Source: Kunin et al., arXiv:2012.04728."
)


def weight_decay(run: RunFacts) -> Line:
    """Report whether weight decay is missing on some matrices; biases and gains are usually excluded from it."""
    topic = "weight decay"
    decays = _decays(run)
    if not decays:
        sentence = "Weight decay is unknown: pass optimizer to the Recorder."
        return Line(topic, "not measured", sentence, theory=_THEORY, weight=0)
    missing = [name for name, each in decays.items() if each == 0 and not _EMBEDDING.search(name)]
    values = sorted({each for each in decays.values() if each > 0})
    if not values:
        sentence = "No weight matrix has weight decay."
        return Line(topic, "uniform", sentence, 0.0, 0.0, _THEORY, weight=0)
    if missing:
        more = "" if len(missing) <= _LISTED else f" and {len(missing) - _LISTED} more"
        sentence = (
            f"{len(missing)} of {len(decays)} weight matrices have no weight decay, while the others have "
            f"{' or '.join(map(rounded, values))}: {', '.join(missing[:_LISTED])}{more}."
        )
        action = "Add these matrices to a parameter group with weight decay, unless you excluded them on purpose."
        return Line(topic, "missing on one group", sentence, float(len(missing)), 0.0, _THEORY, action, weight=3)
    if len(values) > 1:
        sentence = f"All weight matrices have weight decay, with different values: {', '.join(map(rounded, values))}."
        return Line(topic, "differs by group", sentence, 0.0, 0.0, _THEORY)
    without = any(each == 0 for each in decays.values())
    which = "All weight matrices, except embeddings," if without else "All weight matrices"
    return Line(topic, "uniform", f"{which} have the weight decay {rounded(values[0])}.", 0.0, 0.0, _THEORY, weight=0)


def _decays(run: RunFacts) -> Mapping[str, float]:
    """Return the weight decay of each weight matrix in the optimiser."""
    if "parameter_group" not in run.record or not run.groups:
        return {}
    names = [str(each) for each in run.record["parameter"].to_numpy()]
    places = np.asarray(run.record["parameter_group"].to_numpy())
    found = {}
    for name, place in zip(names, places, strict=True):
        if 0 <= place < len(run.groups) and _is_matrix(run, name):
            found[name] = float(run.groups[int(place)].get("weight_decay", 0.0))
    return found


def _is_matrix(run: RunFacts, name: str) -> bool:
    if name in run.initial_weights:
        return run.initial_weights[name].ndim > 1
    return "matrix" in run.record and name in run.record["matrix"].to_numpy()
