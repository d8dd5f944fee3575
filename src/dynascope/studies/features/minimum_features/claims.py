"""Published claims about the features of deep networks: the metric of each claim and the runs it compares."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from dynascope.comparison.effect import Effect, Hypothesis

__all__ = [
    "DECIDING",
    "HYPOTHESES",
    "RANDOM",
    "REGRESSED",
    "changed_fields",
    "claimed_effects",
    "compared",
    "deciding",
    "setting_effects",
    "varied_settings",
]

Runs = Mapping[str, Mapping[str, np.ndarray]]  # metrics over seeds, by run and metric

# Levels of the training settings relative to the fields of the study; RANDOM are fractions of random labels.
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

# Settings that are compared on regressions, which have no accuracy.
REGRESSED = ("outputs", "smallness of targets", "frozen layers")

# Hypothesis, setting, metric, expected direction, statement.
_CLAIMS = (
    ("H1", "training images", "kappa_cka", -1, "More training images bring the features closer to minimum features."),
    ("H1", "training images", "accuracy", 1, "More training images raise the test accuracy."),
    (
        *("H2", "learning rate", "kappa_cka", -1),
        "The learning rate with the best test accuracy leads closer to minimum features than the lowest learning rate.",
    ),
    ("H3", "weight decay", "kappa_cka", -1, "Weight decay brings the features closer to minimum features."),
    (
        *("H3", "weight decay", "flatness", 1),
        "Weight decay makes the C strongest features, one per class, more equal in strength.",
    ),
    ("H3", "weight decay", "accuracy", 1, "Weight decay raises the test accuracy."),
    (
        *("H4", "batch normalisation", "kappa_cka", -1),
        "Batch normalisation brings the features closer to minimum features.",
    ),
    (
        *("H4", "batch normalisation", "gap", 1),
        "Batch normalisation widens the gap in strength after the C strongest features, one per class.",
    ),
    ("H4", "batch normalisation", "accuracy", 1, "Batch normalisation raises the test accuracy."),
    (
        *("H5", "locality", "kappa_cka", -1),
        "Convolutional networks come closer to minimum features than fully connected networks.",
    ),
    ("H6", "random labels", "kappa_cka", 0, "Random labels do not change the distance to minimum features."),
    ("H6", "random labels", "accuracy", -1, "Random labels lower the test accuracy."),
    (
        *("H7", "outputs", "effective_dimension", 1),
        "A network learns more features from one-hot targets than from a scalar target.",
    ),
    (
        *("H8", "smallness of targets", "kappa_cka", 1),
        "Smaller targets leave the features further from minimum features.",
    ),
    (
        *("H8", "frozen layers", "kappa_cka", 1),
        "Training the last layer alone leaves the features even further from minimum features than smaller targets do.",
    ),
    ("H9", "intensity", "quality_rank_correlation", 1, "Stronger features explain more of the targets."),
    ("H9", "intensity", "utilization_rank_correlation", 1, "Stronger features explain more of the outputs."),
)
HYPOTHESES = tuple(dict.fromkeys(name for name, *_ in _CLAIMS))
# Hypotheses whose claims about κ decide the verdict, each with the setting claimed to reduce κ.
DECIDING = {
    "H1": "more training images",
    "H2": "a good learning rate",
    "H3": "weight decay",
    "H4": "batch normalisation",
    "H5": "convolutions",
}


def compared(hypotheses: Collection[str]) -> set[str]:
    """Names of the default run and of all runs that these hypotheses compare."""
    runs = {"default"}.union(*(_LEVELS[setting] for name, setting, *_ in _CLAIMS if name in hypotheses))
    if _BEST in runs:
        runs |= {f"learning rate × {each:g}" for each in _RATES[:-1]}
    return runs - {_BEST, _NOTHING}


def changed_fields(usual: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """The changed field and its value, by name of the run, for each run that changes one default value."""
    levels = {"samples": _SIZES, "learning rate": _RATES, "weight decay": _DECAYS}
    changes = [(name, name.replace(" ", "_"), factor) for name, factors in levels.items() for factor in factors]
    return {
        f"{name} × {factor:g}": {field: type(usual[field])(factor * usual[field])}
        for name, field, factor in changes
        if factor != 1
    }


def claimed_effects(hypotheses: Collection[str], found: Runs) -> list[tuple[Hypothesis, list[np.ndarray]]]:
    """The claims of these hypotheses, each with the runs it compares."""
    runs = _with_best(found)
    return [(each, [runs[level][each.metric] for level in _LEVELS[each.factor]]) for each in _numbered(hypotheses)]


def deciding(hypotheses: Collection[str]) -> tuple[str, ...]:
    """Names of the claims of these hypotheses that decide the verdict."""
    claims = (each for each in _numbered(hypotheses) if each.metric == "kappa_cka")
    return tuple(each.name for each in claims if each.name.partition(" ")[0] in DECIDING)


def _numbered(hypotheses: Collection[str]) -> list[Hypothesis]:
    """The claims of these hypotheses, numbered because a hypothesis can make several."""
    chosen = [each for each in _CLAIMS if each[0] in hypotheses]
    return [
        Hypothesis(setting, metric, direction, f"{name} ({k})", statement)
        for k, (name, setting, metric, direction, statement) in enumerate(chosen, start=1)
    ]


def varied_settings(hypotheses: Collection[str]) -> list[str]:
    """The training settings that these hypotheses vary between networks."""
    varied = dict.fromkeys(setting for name, setting, *_ in _CLAIMS if name in hypotheses)
    return [setting for setting in varied if _NOTHING not in _LEVELS[setting]]


def setting_effects(varied: Sequence[str], found: Runs, metric: str) -> list[Effect]:
    """The change in a metric from the lowest to the highest level of each setting, NaN if the metric is undefined."""
    runs = _with_best(found)
    values = [np.array([runs[level][metric] for level in _LEVELS[setting]]) for setting in varied]
    unknown = Effect(np.nan, np.nan, np.nan, np.nan, 0, "undecided", "the metric is undefined in a run")
    return [Hypothesis("", metric, 0).compare(each) if np.isfinite(each).all() else unknown for each in values]


def _with_best(found: Runs) -> Runs:
    """The runs, plus the run with the best learning rate and a run in which every metric is zero."""
    candidates = (name for name in ("default", f"learning rate × {_RATES[1]:g}") if name in found)
    best = max(candidates, key=lambda name: found[name]["accuracy"].sum())
    nothing = {name: np.zeros(len(values)) for name, values in found["default"].items()}
    return {**found, _BEST: found[best], _NOTHING: nothing}
