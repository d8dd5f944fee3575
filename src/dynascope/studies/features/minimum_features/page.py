"""Figures and text of the study `minimum-features`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded
from dynascope.studies.features.minimum_features import claims

if TYPE_CHECKING:
    from dynascope.studies.features.minimum_features.study import MinimumFeatures

__all__ = ["figures", "meaning"]

_CHART_OF_SETTINGS = functools.partial(Chart, over="dial", points=True, x_label="training setting")
_CURVES_SHOWN = ("default", "samples × 0.125", "random labels 1", "last layer only")


def figures(study: MinimumFeatures, result: Comparison) -> list[Chart]:
    """The figures: effects of the settings that the hypotheses vary, and features of every network."""
    varied = claims.varied_settings(study.hypotheses)
    classified = tuple(each for each in varied if each not in claims.REGRESSED)
    effects = [
        _CHART_OF_SETTINGS(
            "kappa_cka_change",
            interval=("kappa_cka_change_low", "kappa_cka_change_high"),
            title="Effect of training settings on the distance to minimum features",
            caption="Change in the distance κ to minimum features from the lowest to the highest level of each "
            "setting. A negative change brings the features closer to minimum features. Bars "
            f"show 95 % confidence intervals over {study.seeds} initialisations.",
        ),
        _CHART_OF_SETTINGS(
            "accuracy_change",
            interval=("accuracy_change_low", "accuracy_change_high"),
            title="Effect of training settings on the test accuracy",
            members={"dial": classified},
            caption="Change in the test accuracy for the same settings. A setting can change the features without "
            "changing the accuracy.",
        ),
    ]
    mean = result.observed["kappa_cka"].sel(run="default").mean()
    return [
        *effects[: 2 if classified else 1 if varied else 0],
        Chart(
            "kappa_cka",
            over="run",
            title="Distance of each network to minimum features",
            x_label="training setting",
            caption="Distance κ of each network to minimum features, one point per initialisation. The mean for the "
            f"default settings is {rounded(mean)}.",
            points=True,
        ),
        Chart(
            "cumulative_utilization",
            over="mode",
            log="x",
            title="Outputs explained by the strongest features",
            members={"run": tuple(each for each in _CURVES_SHOWN if each in result.observed["run"])},
            x_label="number of features, strongest first",
            caption="Fraction of the outputs explained by the strongest features after training, against the number of "
            "features. Once a curve reaches 1, the outputs use none of the remaining features.",
        ),
    ]


def meaning(study: MinimumFeatures, result: Comparison) -> str:
    """Summarise the distance to minimum features of the networks, and state what the verdict rests on."""
    kappa = result.observed["kappa_cka"]
    default = result.observed.sel(run="default")
    deciding = [words for name, words in claims.DECIDING.items() if name in study.hypotheses]
    listed = ", ".join(deciding[:-1]) + (" and " if deciding[1:] else "") + deciding[-1] if deciding else ""
    verdict = (
        f"The verdict rests on whether κ decreases with {listed}, as reported for large networks; small networks on "
        "small images can behave differently."
        if deciding
        else "The verdict is undecided, because no chosen hypothesis predicts a decrease in κ."
    )
    return (
        "A classifier needs about one feature per class in its last hidden layer but has room for many more. κ "
        "measures the distance to minimum features; it is zero if the features span no more dimensions than the "
        f"outputs, and features with κ below {rounded(study.threshold)} count as minimal. With the default settings, "
        f"the mean κ over {study.seeds} initialisations is {rounded(default['kappa_cka'].mean())} and the mean test "
        f"accuracy is {percent(default['accuracy'].mean())}. Across all settings, κ ranges from "
        f"{rounded(kappa.min())} to {rounded(kappa.max())}. {verdict}"
    )
