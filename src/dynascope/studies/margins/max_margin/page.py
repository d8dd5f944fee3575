"""Figures and text of the study `max-margin`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.margins.max_margin.study import MaxMargin

__all__ = ["figures", "meaning"]


def figures(study: MaxMargin, result: Comparison) -> list[Chart]:
    """The figures: margins and directions of the classifiers, discarded weight, and collapse of features."""
    observed = result.observed
    linear, mixed = (rounded(_margin(result, name)) for name in ("linear", "mixed"))
    distance = observed["direction_distance"].sel(architecture="linear")
    share = observed["block_share"].sel(parameter_block="single weight").isel(margin_level=-1)
    spread = observed["unnormalised_nc1"].isel(margin_level=-1).mean()
    return [
        Chart(
            "euclidean_margin",
            over="margin_level",
            log="x",
            title="Euclidean margin of three parametrisations",
            y_label="Euclidean margin",
            caption="Smallest distance of a sample from the decision boundary, for three parametrisations of the same "
            f"linear classifiers trained on the same two samples. The linear parametrisation ends at {linear}, and "
            f"the mixed one (one weight and one product of weights) at {mixed}. Dashed lines are the predicted limits.",
        ),
        Chart(
            "direction_distance",
            over="margin_level",
            log="xy",
            title="Slow convergence of the direction",
            y_label="relative distance from the limit",
            caption="Distance of β/ν from its limit, against ν = log(1/L). For the linear classifier, it falls "
            f"from {rounded(distance.isel(margin_level=0))} at the loss exp(−10) to "
            f"{rounded(distance.isel(margin_level=-1))} at the end. Theory predicts a decay as 1/ν, and a slower decay "
            "for products.",
        ),
        Chart(
            ("random_distance", "random_own_error"),
            "run",
            "Distance of β/ν from the predicted limit on random data at the end of training (at most "
            f"{rounded(observed['random_distance'].max())}), and the predicted error of the limit at this ν.",
            log="y",
            symbols={"seed": ""},
            words=("measured", "predicted error"),
            title="Distance from the limit on random data",
            x_label="classifier and dimension",
            y_label="relative distance from the limit",
            points=True,
        ),
        Chart(
            "block_share",
            over="margin_level",
            log="xy",
            title="Contribution of an unnecessary weight",
            y_label="share of the margin",
            caption="Mixed classifier trained on one sample that the product of weights can separate alone. The share "
            f"of the single weight in the margin ends at {rounded(share)}. Dashed curves show the exact solution.",
        ),
        Chart(
            ("normalised_nc1", "unnormalised_nc1"),
            over="margin_level",
            log="xy",
            decades=16.0,
            symbols={"start": ""},
            words=("normalised features", "without normalisation"),
            title="Collapse of normalised features",
            y_label="within-class over between-class variance",
            caption="Ratio of the within-class to the between-class variance of the features (NC1), for the same "
            "two-layer network on the same inputs, with and without normalisation of the features. Without "
            f"normalisation the mean over initialisations ends at {rounded(spread)}.",
        ),
    ]


def meaning(study: MaxMargin, result: Comparison) -> str:
    """Explain how the growth rates of the parameters determine the margin, with the measured margins."""
    observed = result.observed
    share = observed["block_share"].sel(parameter_block="single weight").isel(margin_level=-1)
    normalised, free = (observed[f"{name}_nc1"].isel(margin_level=-1).mean() for name in ("normalised", "unnormalised"))
    first = observed["direction_distance"].sel(architecture="mixed").isel(margin_level=0)
    return (
        "Once a classifier is correct on all samples, its loss falls further only as its outputs grow. Theory "
        "predicts that gradient flow minimises a norm of the parameters at a given margin. If all parameters grow at "
        "the same rate, the norm includes all of them. For the linear classifier, gradient flow then maximises the "
        f"Euclidean margin, which ended at {rounded(_margin(result, 'linear'))}. If some parameters grow faster, the "
        "norm includes only these. The mixed classifier can represent the same functions, with a product of two "
        f"weights in place of one, and its Euclidean margin ended at {rounded(_margin(result, 'mixed'))}. Theory "
        "predicts that fast parameters are discarded if they are not needed: the share of the unnecessary weight in "
        f"the margin ended at {rounded(share)}. A layer before a normalisation does not grow at all, and its norm is "
        "free. For such a layer, theory predicts neural collapse: the features converge to values at which the "
        "readout has the smallest norm. The ratio of the within-class to the between-class variance of the features "
        f"ended at {rounded(normalised)} with normalisation and at {rounded(free)} without. Convergence is slow. At "
        f"the loss exp(−10), the relative distance of the mixed classifier from its limit was still {rounded(first)}. "
        "The verdict compares the limits at losses of exp(−100000) or less, which training in discrete steps does not "
        "reach."
    )


def _margin(result: Comparison, architecture: str) -> float:
    """The final Euclidean margin of a classifier."""
    return float(result.observed["end_euclidean_margin"].sel(architecture=architecture))
