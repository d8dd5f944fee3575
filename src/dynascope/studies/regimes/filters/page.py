"""Figures and text of the study `filters`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.regimes.filters.study import Filters

__all__ = ["figures", "meaning"]

_OVER_SCALE = functools.partial(Chart, over="relative_scale", log="x", points=True, joined=True)
_OVER_TIME = functools.partial(Chart, over="epoch", symbols={"relative_scale": "α"}, points=True, joined=True)


def figures(study: Filters, result: Comparison) -> list[Chart]:
    """The figures: scores over the relative scale, distribution of the scores, and scores during training."""
    average = f"Mean over {study.filters} filters and {study.seeds} networks; the band is a 95 % confidence interval."
    noise = "The dashed line is the average for filters of white noise, such as the initial filters."
    return [
        _OVER_SCALE(
            "final_gabor",
            error="gabor_half_width",
            title="Similarity of the filters to Gabor functions",
            caption="Fraction R² of each trained first-layer filter that a Gabor function, a localised wave, explains. "
            "At relative scales α > 1 (upstream), the first layer learns faster than the last one. "
            f"{average} {noise}",
        ),
        Chart(
            "gabor_quantiles",
            over="quantile",
            symbols={"relative_scale": "α"},
            title="Gabor fits of all filters",
            x_label="fraction of filters with a smaller R²",
            y_label="R² of the Gabor fit",
            caption="R² of all trained filters in increasing order, with one line for each relative scale α.",
        ),
        _OVER_SCALE(
            "final_concentration",
            error="concentration_half_width",
            title="Spectral concentration of the filters",
            caption="Spectral concentration of the trained filters: zero for a flat spectrum, and one for a single "
            f"spatial frequency. {average} {noise}",
        ),
        _OVER_SCALE(
            "final_roughness",
            error="roughness_half_width",
            title="Roughness of the filters",
            caption="Squared differences between neighbouring pixels of the trained filters, relative to their squared "
            f"norm. Structured filters are smoother than noise. {average} {noise}",
        ),
        _OVER_TIME(
            "mean_gabor",
            title="Gabor fit during training",
            caption="Mean R² of the Gabor fit during training, with one line for each relative scale α.",
        ),
        _OVER_TIME(
            "mean_loss",
            title="Training loss",
            caption="Cross-entropy on the training patches. The learning rate is lower where one layer dominates the "
            "NTK, so that training is stable at every relative scale.",
        ),
        _OVER_SCALE(
            "final_test_accuracy",
            error="test_accuracy_half_width",
            title="Test accuracy",
            caption="Fraction of test patches whose rotation was recognised. Guessing would give 25 %. "
            f"Mean over {study.seeds} networks, with the 95 % confidence interval.",
        ),
        _OVER_SCALE(
            "final_movement",
            error="movement_half_width",
            log="xy",
            title="Change of the filters",
            caption="Relative change ‖W − W₀‖/‖W₀‖ of the first layer during training.",
        ),
    ]


def meaning(study: Filters, result: Comparison) -> str:
    """Summarise the scores at the extreme relative scales."""
    found, noise = result.observed, result.predicted
    ends = {
        name: [rounded(found[f"final_{name}"][k]) for k in (0, -1)]
        for name in ("gabor", "concentration", "roughness", "movement")
    }
    (gabor, concentration, rough, moved) = ends.values()
    white = [rounded(noise[f"final_{name}"][0]) for name in ("gabor", "concentration", "roughness")]
    down, up = rounded(study.relative_scales[0]), rounded(study.relative_scales[-1])
    accuracy = [percent(found["final_test_accuracy"][k]) for k in (0, -1)]
    return (
        "Small convolutional networks learned by which quarter turn a patch of an image was rotated. Their "
        f"filters of {study.kernel} × {study.kernel} pixels moved by {moved[0]} of their initial norm at the relative "
        f"scale {down} (downstream), and by {moved[1]} at {up} (upstream). After training, the mean R² of the Gabor "
        f"fit was {gabor[0]} downstream and {gabor[1]} upstream, compared with {white[0]} for white noise. The "
        f"spectral concentration was {concentration[0]} and {concentration[1]} (noise: {white[1]}), and the roughness "
        f"{rough[0]} and {rough[1]} (noise: {white[2]}). The test accuracy was {accuracy[0]} downstream and "
        f"{accuracy[1]} upstream. All networks of a seed had the same initial function, so only the relative scale of "
        "their layers differed."
    )
