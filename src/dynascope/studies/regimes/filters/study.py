"""The relative scale of the layers decides whether the first-layer filters of a CNN become structured."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import xarray as xr
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.probes.filters import FilterScores, white_noise_scores
from dynascope.results import Comparison
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.regimes.filters import page
from dynascope.studies.regimes.filters.claims import DECIDING, filter_claims
from dynascope.studies.regimes.filters.experiment import QUANTILES, SCORES, SIDE, Experiment
from dynascope.theory import papers
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_DOWNSTREAM, _UPSTREAM = 0.5, 2.0  # scales at which the layers learn at clearly different rates
_POSITIONS = 2  # smallest number of filter positions along a side, because responses are averaged in pairs


class Filters(ClaimsStudy):
    """Tests whether upstream networks learn structured first-layer filters.

    Convolutional networks learn by which quarter turn a patch of a photograph was rotated. Their initial first layer is
    divided by the relative scale α, and the last layer is multiplied by α, so that the initial function does not depend
    on α. In upstream networks (α > 1), the first layer learns faster than the last one; in downstream networks
    (α < 1), it learns more slowly.

    Three scores measure the structure of the filters: the fit of a Gabor function, the concentration of the power
    spectrum, and the roughness. None of them has a trivial value for random filters, so they are compared with their
    averages for white noise. The verdict rests on six claims: for each score, the trained filters are more structured
    upstream than downstream, and more structured upstream than white noise. Confidence intervals are over
    initialisations; all networks are trained on the same patches. The differences between upstream and standard
    networks (α = 1), the test accuracy and the movement of the filters are only reported. How the paper measured the
    structure of filters is not known, so the scores are a choice of this study.

    A run with `seed=100`, which was not used while the study was written, gave the same verdict.
    """

    data: str = parameter(
        "photographs",
        '"photographs" (two photographs of scikit-learn), or the path to labelled images, whose labels are ignored.',
    )
    patches: Annotated[int, Ge(20)] = parameter(3000, "Number of training patches, each in four orientations.")
    test_patches: Annotated[int, Ge(20)] = parameter(300, "Number of test patches, each in four orientations.")
    kernel: Annotated[int, Interval(ge=7, le=20)] = parameter(9, "Side of the filters in pixels.")
    stride: Annotated[int, Interval(ge=1, le=12)] = parameter(4, "Stride of the filters in pixels.")
    filters: Annotated[int, Ge(2)] = parameter(16, "Number of filters.")
    width: PositiveInt = parameter(64, "Width of the hidden layer behind the filters.")
    relative_scales: list[Annotated[float, Interval(ge=0.05, le=20)]] = parameter(
        [0.25, 1.0, 4.0], "Relative scales α.", fewest=2, increasing=True
    )
    seeds: Annotated[int, Ge(2)] = parameter(4, "Number of initialisations.")
    epochs: Annotated[int, Ge(2)] = parameter(20, "Number of passes over the training patches.")
    batch_size: PositiveInt = parameter(64, "Number of patches per step.")
    learning_rate: PositiveFloat = parameter(
        0.3, "Learning rate η at α = 1; it is multiplied by 3/(α² + 1 + α⁻²) at other relative scales."
    )
    seed: Seed = parameter(0, "Seed of the patches and of the first initialisation.")

    reference = Reference.of(
        papers.UNBALANCED,
        "Upstream initialisations, whose first layer learns faster than the last one, lead to more interpretable "
        "first-layer filters of convolutional networks.",
    )
    title = "First-layer filters at different relative scales"
    question = "Does the relative scale of the layers decide whether the first filters of a CNN become structured?"
    figures, meaning = page.figures, page.meaning
    equation = r"W_1 \to W_1 / \alpha, \quad W_L \to \alpha W_L, \quad f_{\theta(0)} \text{ unchanged}"
    minutes = 1.2
    theory = "average scores of white noise; invariance of the initial function"
    along = "relative_scale"
    axes = ("relative_scale", "seed")
    task = "rotation of image patches"
    notes = (
        "{patches} training and {test_patches} test patches of 32 × 32 pixels, each in four orientations.",
        "Data: {data}. Patches have mean zero and variance one.",
    )
    trains = "convolution with {filters} filters of {kernel} × {kernel} pixels, hidden layer of {width} neurons"
    flow = "stochastic gradient descent"
    convention = "loss = cross-entropy in nats (mean over samples); time = epochs"
    deciding_claims = DECIDING
    symbols = {"relative_scale": "α"}
    labelled = {"relative_scale": "relative_scales", "epoch": "_epochs", "quantile": lambda _: QUANTILES}
    names = {
        "relative_scale": ("relative scale α", "1"),
        "quantile": ("fraction of filters", "1"),
        "epoch": ("epoch", "1"),
        "loss": ("training loss", "1"),
        "mean_loss": ("training loss", "1"),
        "test_accuracy": ("test accuracy", "1"),
        "mean_test_accuracy": ("test accuracy", "1"),
        "final_test_accuracy": ("test accuracy", "1"),
        "movement": ("relative change of the filters", "1"),
        "mean_movement": ("relative change of the filters", "1"),
        "final_movement": ("relative change of the filters", "1"),
        "gabor_quantiles": ("R² of the Gabor fit", "1"),
        "initial_loss_ratio": ("initial loss over that at the smallest relative scale", "1"),
        **{
            f"{part}{name}": (words, "1")
            for part in ("", "mean_", "final_")
            for name, words in (
                ("gabor", "R² of the Gabor fit"),
                ("concentration", "spectral concentration"),
                ("roughness", "roughness"),
            )
        },
    }
    tolerance = curve_tolerance(
        initial_loss_ratio=(0.001, "the initial function does not depend on α, up to rounding in single precision")
    )
    checks = tuple(tolerance)
    tiny = {
        **{"patches": 1000, "test_patches": 200, "filters": 8, "width": 32, "seeds": 3, "epochs": 14},
        **{"relative_scales": [0.25, 4.0]},
    }

    def check(self) -> None:
        """Require filters that fit into a patch, and scales that reach both regimes."""
        positions = (SIDE - self.kernel) // self.stride + 1
        remedy = f"choose a smaller stride, so that filters have at least {_POSITIONS} positions along a side"
        self.require(positions >= _POSITIONS, "stride", remedy, beside="kernel")
        both = self.relative_scales[0] <= _DOWNSTREAM and self.relative_scales[-1] >= _UPSTREAM
        remedy = f"choose a smallest value of at most {_DOWNSTREAM:g} and a largest value of at least {_UPSTREAM:g}"
        self.require(both, "relative_scales", remedy)
        remedy = f"choose at most {4 * self.patches}, the number of rotated training patches"
        self.require(self.batch_size <= 4 * self.patches, "batch_size", remedy, beside="patches")

    def trained(self) -> Values:
        """Train all networks and score their filters."""
        return self._experiment.trained()

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Evaluate the claims about the trained filters."""
        names = (*SCORES, "test_accuracy", "movement")
        ends = {name: np.asarray(found[name][1])[:, :, -1] for name in names}
        middle = np.abs(np.log(self.relative_scales)).argmin()
        inside = 0 < middle < len(self.relative_scales) - 1
        return filter_claims(ends, self._noise, standard=int(middle) if inside else None)

    def exact(self) -> Values:
        """The average scores of white noise, and the invariance of the initial loss."""
        scales = len(self.relative_scales)
        noise = {
            f"final_{name}": (("relative_scale",), [value] * scales) for name, value in self._noise._asdict().items()
        }
        return {**noise, "initial_loss_ratio": np.ones((scales, self.seeds))}

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare the initial losses, and add the scores of white noise to the figures."""
        names = [f"final_{name}" for name in SCORES]
        result = super().compared(observed, predicted.drop_vars(names, errors="ignore"))
        return dataclasses.replace(result, predicted=predicted)

    @property
    def _epochs(self) -> list[int]:
        return self._experiment.epochs

    @functools.cached_property
    def _noise(self) -> FilterScores:
        return white_noise_scores(self.kernel)

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)
