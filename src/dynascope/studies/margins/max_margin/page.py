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
            f"linear classifiers trained on the same two samples. The margin ends at {linear} for the linear "
            f"parametrisation and at {mixed} for the mixed one (one weight and one product of weights). Dashed lines "
            "are the predicted limits.",
        ),
        Chart(
            "direction_distance",
            over="margin_level",
            log="xy",
            title="Slow convergence of the direction",
            y_label="relative distance from the limit",
            caption="Relative distance of β/ν from its limit, against ν = log(1/L). For the linear classifier, the "
            f"distance falls from {rounded(distance.isel(margin_level=0))} at a loss of exp(−10) to "
            f"{rounded(distance.isel(margin_level=-1))} at the end. The predicted decay is 1/ν for single weights and "
            "slower for products.",
        ),
        Chart(
            ("random_distance", "random_own_error"),
            "run",
            "Relative distance of β/ν from its limit at the end of training on random data (at most "
            f"{rounded(observed['random_distance'].max())}), and the predicted distance.",
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
            caption="Contributions to the margin of a mixed classifier, trained on one sample that the product alone "
            f"can separate. The single weight's share of the margin ends at {rounded(share)}. Dashed curves show the "
            "exact solution.",
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
            f"normalisation, the mean over initialisations ends at {rounded(spread)}.",
        ),
    ]


def meaning(study: MaxMargin, result: Comparison) -> str:
    """Explain how the growth rates of the parameters determine the margin, with the measured margins."""
    observed = result.observed
    share = observed["block_share"].sel(parameter_block="single weight").isel(margin_level=-1)
    normalised, free = (observed[f"{name}_nc1"].isel(margin_level=-1).mean() for name in ("normalised", "unnormalised"))
    first = observed["direction_distance"].sel(architecture="mixed").isel(margin_level=0)
    return (
        "Once a classifier is correct on all samples, its loss falls further only as its outputs grow. The theory "
        "predicts that gradient flow minimises a norm of the parameters at a given margin. If all parameters grow at "
        "the same rate, the norm includes all of them. For the linear classifier, gradient flow then maximises the "
        f"Euclidean margin, which ended at {rounded(_margin(result, 'linear'))}. If some parameters grow faster than "
        "others, the norm includes only the fastest-growing parameters. The mixed classifier can represent the same "
        "functions, with a product of two weights in place of one weight, and its Euclidean margin ended at "
        f"{rounded(_margin(result, 'mixed'))}. The theory also predicts that fast-growing parameters are discarded if "
        f"they are not needed: the contribution of the unnecessary weight to the margin ended at {rounded(share)} of "
        "the total. A layer followed by normalisation does not grow at all and is not part of the norm. For a network "
        "with such a layer, the theory predicts neural collapse: the features converge to the configuration that "
        "minimises the norm of the readout. The ratio of the within-class to the between-class variance of the "
        f"features ended at {rounded(normalised)} with normalisation and at {rounded(free)} without. Convergence is "
        "slow: at a loss of exp(−10), the relative distance of the mixed classifier from its limit was still "
        f"{rounded(first)}. The verdict compares training with the predicted limits at losses of exp(−100000) or less, "
        "which training in discrete steps does not reach."
    )


def _margin(result: Comparison, architecture: str) -> float:
    """The final Euclidean margin of a classifier."""
    return float(result.observed["end_euclidean_margin"].sel(architecture=architecture))
