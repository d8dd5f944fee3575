"""What has been claimed of the features of deep networks: what is measured of each, and which runs a claim compares."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from dynascope.comparison.effect import Effect, Hypothesis

__all__ = ["HYPOTHESES", "RANDOM", "REGRESSED", "compared", "deciding", "dialled", "dials", "moved_by", "put_claims"]

Runs = Mapping[str, Mapping[str, np.ndarray]]  # for each run what was measured of all seeds, by name

# Levels of the dials, over the values of the study; RANDOM are fractions of random labels.
_SIZES, _RATES, _DECAYS = (1 / 8, 1 / 4, 1 / 2, 1.0), (1 / 100, 1 / 10, 1.0), (0.0, 1 / 10, 1.0, 10.0)
RANDOM = (0.0, 0.1, 1.0)

_BEST, _NOTHING = "best learning rate", "nothing"
_LEVELS = {
    "training images": [*(f"samples × {each:g}" for each in _SIZES[:-1]), "default"],
    "learning rate": [f"learning rate × {_RATES[0]:g}", _BEST],
    "weight decay": ["default" if each == 1 else f"weight decay × {each:g}" for each in _DECAYS],
    "batch normalisation": ["vgg", "vgg-normalised"],
    "locality": ["fully connected", "convolutional"],
    "random labels": ["default", *(f"random labels {each:g}" for each in RANDOM[1:])],
    "outputs": ["scalar target", "rich"],
    "smallness of targets": ["rich", "downscaled target"],
    "frozen layers": ["downscaled target", "last layer only"],
    "intensity": [_NOTHING, "default"],
}

REGRESSED = ("outputs", "smallness of targets", "frozen layers")  # between networks that have no accuracy

# Name, dial, metric, expected direction, statement.
_CLAIMS = (
    ("H1", "training images", "kappa_cka", -1, "More training data bring minimum features."),
    ("H1", "training images", "accuracy", 1, "More training data test better."),
    ("H2", "learning rate", "kappa_cka", -1, "The rate that tests best has fewer features than the lowest."),
    ("H3", "weight decay", "kappa_cka", -1, "Weight decay brings minimum features."),
    ("H3", "weight decay", "flatness", 1, "Weight decay flattens the first C intensities."),
    ("H3", "weight decay", "accuracy", 1, "Weight decay tests better."),
    ("H4", "batch normalisation", "kappa_cka", -1, "Batch normalisation brings minimum features."),
    ("H4", "batch normalisation", "gap", 1, "Batch normalisation widens the gap after the first C intensities."),
    ("H4", "batch normalisation", "accuracy", 1, "Batch normalisation tests better."),
    ("H5", "locality", "kappa_cka", -1, "Convolutions bring minimum features where full connections do not."),
    ("H6", "random labels", "kappa_cka", 0, "Random labels collapse as true ones do."),
    ("H6", "random labels", "accuracy", -1, "Random labels do not generalise."),
    (
        "H7",
        "outputs",
        "effective_dimension",
        1,
        "A scalar target takes one feature beside the constant; classes, more.",
    ),
    ("H8", "smallness of targets", "kappa_cka", 1, "Small targets leave more features."),
    ("H8", "frozen layers", "kappa_cka", 1, "A last layer trained alone leaves more features still."),
    ("H9", "intensity", "quality_rank_correlation", 1, "Strong features have more quality."),
    ("H9", "intensity", "utilization_rank_correlation", 1, "Strong features are used more."),
)
HYPOTHESES = tuple(dict.fromkeys(name for name, *_ in _CLAIMS))
_DECIDING = HYPOTHESES[:5]  # what is claimed to bring minimum features


def compared(hypotheses: Collection[str]) -> set[str]:
    """The names of the runs that these hypotheses compare, and of the default."""
    runs = {"default"}.union(*(_LEVELS[dial] for name, dial, *_ in _CLAIMS if name in hypotheses))
    if _BEST in runs:
        runs |= {f"learning rate × {each:g}" for each in _RATES[:-1]}
    return runs - {_BEST, _NOTHING}


def dialled(usual: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """The runs that turn one dial, by name, with what it is turned to, of fields that usually are so."""
    levels = {"samples": _SIZES, "learning rate": _RATES, "weight decay": _DECAYS}
    turned = [(dial, dial.replace(" ", "_"), each) for dial, each_of in levels.items() for each in each_of if each != 1]
    return {f"{dial} × {each:g}": {field: type(usual[field])(each * usual[field])} for dial, field, each in turned}


def put_claims(hypotheses: Collection[str], found: Runs) -> list[tuple[Hypothesis, list[np.ndarray]]]:
    """What is claimed by these hypotheses, each with the runs that it compares."""
    runs = _with_best(found)
    return [(each, [runs[level][each.metric] for level in _LEVELS[each.factor]]) for each in _numbered(hypotheses)]


def deciding(hypotheses: Collection[str]) -> tuple[str, ...]:
    """Names of the claims of these hypotheses that say what brings minimum features."""
    claims = (each for each in _numbered(hypotheses) if each.metric == "kappa_cka")
    return tuple(each.name for each in claims if each.name.partition(" ")[0] in _DECIDING)


def _numbered(hypotheses: Collection[str]) -> list[Hypothesis]:
    """The claims of these hypotheses, numbered, as one hypothesis makes several."""
    chosen = [each for each in _CLAIMS if each[0] in hypotheses]
    return [
        Hypothesis(dial, metric, direction, f"{name} ({k})", statement)
        for k, (name, dial, metric, direction, statement) in enumerate(chosen, start=1)
    ]


def dials(hypotheses: Collection[str]) -> list[str]:
    """What is varied between networks to test these hypotheses."""
    varied = dict.fromkeys(dial for name, dial, *_ in _CLAIMS if name in hypotheses)
    return [dial for dial in varied if _NOTHING not in _LEVELS[dial]]


def moved_by(varied: Sequence[str], found: Runs, metric: str) -> list[Effect]:
    """How each dial moves a metric from its lowest to its highest level, NaN where the metric means nothing."""
    runs = _with_best(found)
    values = [np.array([runs[level][metric] for level in _LEVELS[dial]]) for dial in varied]
    unknown = Effect(np.nan, np.nan, np.nan, np.nan, 0, "undecided", "the metric is undefined in a run")
    return [Hypothesis("", metric, 0).compare(each) if np.isfinite(each).all() else unknown for each in values]


def _with_best(found: Runs) -> Runs:
    """The runs with that of the best learning rate, and with one in which everything is zero."""
    candidates = (name for name in ("default", f"learning rate × {_RATES[1]:g}") if name in found)
    best = max(candidates, key=lambda name: found[name]["accuracy"].sum())
    nothing = {name: np.zeros(len(values)) for name, values in found["default"].items()}
    return {**found, _BEST: found[best], _NOTHING: nothing}
