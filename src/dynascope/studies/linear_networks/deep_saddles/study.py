"""Deep linear networks with small initial weights have a vanishing initial NTK and learn mode by mode."""

from __future__ import annotations

import functools
from typing import Annotated

import numpy as np
import xarray as xr
from annotated_types import Ge, Gt

from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.studies.linear_networks.deep_saddles import page
from dynascope.studies.linear_networks.deep_saddles.experiment import Experiment
from dynascope.studies.tolerances import with_limits
from dynascope.tasks import Task
from dynascope.validation.bounded import FiniteFloat, PositiveFloat, PositiveInt, Seed

_PLATEAUS = ("plateau_rank", "plateau_loss")
_PLATEAU_ERROR, _PLATEAU_REASON = 0.03, "from a finite initialisation, the network only approaches each plateau"
_SLOPE_ERROR, _SLOPE_REASON = 0.04, "the leading-order theory neglects the duration of the jump"


class DeepSaddles(Study):
    """Tests deep linear networks x W₁ ⋯ W_L with weights of variance width^−γ, at initialisation and during training.

    At initialisation, the study fits the exponents with which the output variance and the NTK of random networks scale
    with the width, for every depth and γ. Variables whose names end in `_error` contain the standard errors of the
    fits. The theory predicts a transition at γ = 1: for γ > 1, the NTK vanishes, and the network starts near the saddle
    at the origin. The paper concludes that wide networks train lazily for γ < 1; this study does not train networks
    with γ < 1.

    For γ > 1, the study trains two kinds of networks on whitened inputs. (i) In networks with aligned layers,
    `mode_strength`, `loss` and the learned rank Σ sᵢ/σᵢ (`learned_rank`) have closed forms. (ii) Networks with random
    layers are trained with each γ in `training_gammas`. For the largest γ, `plateau_rank` and `plateau_loss` are the
    learned rank and the loss halfway between jumps. The paper conjectures that the ranks are 0, 1, 2, … and that the
    losses are those of the best linear maps of these ranks. `escape_slope` is the slope of the time t of the first jump
    against log(1/scale), relative to the prediction; with more than two layers, the slope of log t is used. The
    prefactor of t depends on the random weights.
    """

    depths: list[Annotated[int, Ge(2)]] = parameter(
        [2, 3, 4], "Depths of the random networks that are measured at initialisation."
    )
    gammas: list[FiniteFloat] = parameter([0.75, 1.0, 1.25, 1.75], "Values of γ at which random networks are measured.")
    widths: list[Annotated[int, Ge(2)]] = parameter(
        [32, 64, 128, 256], "Hidden widths used to fit the exponents.", fewest=3, increasing=True
    )
    draws: PositiveInt = parameter(60, "Number of random networks for each depth, γ and width.")
    depth: Annotated[int, Ge(2)] = parameter(3, "Number of layers L of the trained networks.")
    width: Annotated[int, Ge(2)] = parameter(30, "Hidden width of the trained random networks.")
    training_gammas: list[Annotated[float, Gt(1)]] = parameter(
        [3.0, 4.0, 5.0],
        "Two or more values of γ > 1 for the trained random networks. With more than two layers, the durations of the "
        "plateaus grow with γ as width^((γ − 1)(L/2 − 1)).",
        fewest=2,
        increasing=True,
    )
    singular_values: list[PositiveFloat] = parameter(
        [4.0, 2.0, 1.0], "Singular values σᵢ of the target map, the largest first.", fewest=2
    )
    times: Annotated[int, Ge(100)] = parameter(2000, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of all random networks.")

    reference = Reference.of(
        "A. Jacot, F. Ged, B. Şimşek, C. Hongler, F. Gabriel, Saddle-to-Saddle Dynamics in Deep Linear Networks: Small "
        "Initialization Training, Symmetry, and Sparsity (arXiv 2106.15933)",
        "The initial NTK of deep linear networks with weights of variance width^−γ grows with the width for γ < 1 and "
        "vanishes for γ > 1. When training starts from small weights (γ > 1), the loss has plateaus at the losses of "
        "the best linear maps of rank 0, 1, 2, …. The duration of the first plateau increases at a known rate as the "
        "initial weights decrease.",
    )
    title = "From saddle to saddle"
    question = "Does a deep linear network learn one mode at a time from small random weights?"
    figures, meaning = page.figures, page.meaning
    equation = r"\frac{ds_i}{dt} = L \, s_i^{2 - 2/L} (\sigma_i - s_i)"
    minutes = 0.3
    theory = "deep modes"
    along = ("time", "level", "exponent")
    notes = ("The inputs are whitened, and the target map has singular values {singular_values}.",)
    trains = "linear network with {depth} layers"
    flow = "gradient flow"
    labelled = {
        **{"scale": "_experiment.scales", "scaling_parameter": "widths", "exponent": "gammas"},
        "architecture": lambda study: [f"{depth} layers" for depth in study.depths],
    }
    names = {
        "exponent": ("exponent γ of the initial weights", "1"),
        "regime": ("regime", "1"),
        "random_loss": ("loss from random weights", "1"),
        "plateau_loss": ("loss on the plateau", "1"),
        "plateau_rank": ("learned rank on the plateau", "1"),
        "learned_rank": ("learned rank", "1"),
        "random_learned_rank": ("learned rank from random weights", "1"),
        "escape_slope": ("slope of the escape time against the scale, relative to the leading order", "1"),
        "log_escape_time": ("logarithm of the escape time", "1"),
        "log_kernel": ("logarithm of the NTK", "1"),
        "log_output_variance": ("logarithm of the output variance", "1"),
        "output_variance_exponent": ("width exponent of the output variance", "1"),
        "kernel_exponent": ("width exponent of the NTK", "1"),
    }
    tolerance = {
        **exact(
            *("loss", "mode_strength", "learned_rank"),
            error=1e-5,
            reason="the theory is exact; the local solver errors of 1e-10 accumulate on long plateaus",
        ),
        **exact(
            *("output_variance_exponent", "kernel_exponent"),
            error=0.03,
            reason="moments averaged over a finite number of random networks fluctuate by 1 to 2 %",
        ),
        **exact(*_PLATEAUS, error=_PLATEAU_ERROR, reason=_PLATEAU_REASON),
        **exact("escape_slope", error=_SLOPE_ERROR, reason=_SLOPE_REASON),
    }
    tiny = {
        **{"depths": [2, 3], "gammas": [0.75, 1.5], "widths": [16, 64, 256], "width": 12},
        **{"training_gammas": [4.0, 6.0], "singular_values": [3.0, 1.0], "times": 600},
    }

    def check(self) -> None:
        """Check that the singular values decrease and that the NTK scales with the width at some γ."""
        falling = sorted(self.singular_values, reverse=True)
        self.require(falling == list(self.singular_values), "singular_values", "sort the values in decreasing order")
        self.require(
            set(self.gammas) != {1.0},
            "gammas",
            "add a value other than 1, because the NTK does not scale with the width at γ = 1",
        )

    def trained(self) -> Values:
        """Measure random networks at initialisation, and train aligned and random networks by gradient flow."""
        return self._experiment.trained()

    def exact(self) -> Values:
        """Evaluate the closed forms of aligned layers, and the exponents and plateaus of the paper."""
        return self._experiment.exact()

    def with_tolerances(self, predicted: xr.Dataset) -> xr.Dataset:
        """Attach tolerances of at least twice the error of aligned layers with these settings."""
        plateau_error = self._experiment.plateau_error(
            predicted["learned_rank"].to_numpy(), predicted["loss"].to_numpy()
        )
        slope = max(_SLOPE_ERROR, 2 * self._experiment.slope_correction)
        limits = exact("escape_slope", error=slope, reason=_SLOPE_REASON)
        limits |= exact(*_PLATEAUS, error=max(_PLATEAU_ERROR, 2 * plateau_error), reason=_PLATEAU_REASON)
        return with_limits(super().with_tolerances(predicted), limits)

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)

    @property
    def _task(self) -> Task:
        return self._experiment.task

    @property
    def _times(self) -> np.ndarray:
        return self._experiment.times
