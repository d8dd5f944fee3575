"""Linear autoencoders learn principal directions one by one; only weight decay makes the directions identifiable."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from annotated_types import Ge

from dynascope.comparison import Claim
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.interventions.linear_autoencoder import page
from dynascope.studies.interventions.linear_autoencoder.experiment import PENALTIES, Experiment
from dynascope.validation.bounded import OpenFraction, PositiveFloat, PositiveInt, Seed

_SHARE = 0.03  # largest predicted size of the next direction's weights at a saddle

_QUADRATIC = (
    1e-3,
    "at a saddle, the weights of the next direction are at most 0.03, and their effect on the loss is quadratic",
)
_SPECTRUM = (3e-2, "at a saddle, the weights of the next direction are at most 0.03")
_EXACT = (1e-6, "the theory is exact, and the relative tolerance of the solver is 1e-10")


class LinearAutoencoder(ClaimsStudy):
    """Tests the predicted saddles and minima of linear autoencoders under three losses.

    The losses are ‖X − X A B‖² alone, with the penalty λ‖A B‖² on the product of the layers, and with the penalty
    λ(‖A‖² + ‖B‖²) on the weights (weight decay). All critical points of these losses are known, as are the loss and the
    Hessian at each of them.

    From small random weights, training visits one saddle for each learned direction. The study compares the loss over
    time with its closed form in the limit of vanishing weights (`loss`). It also compares the losses at the points
    closest to the saddles with the critical values (`saddle_loss`), and the eigenvalues of the Hessian at these points
    with their closed forms (`saddle_hessian`, with weight decay).

    From standard initial weights (of order one), training converges to the global minimum (`final_loss`). With weight
    decay, the singular values of the decoder have a closed form (`decoder_strength`), and its right singular vectors
    are the principal directions. Without a penalty, or with the penalty on the product, the right singular vectors are
    other vectors in the same subspace. Three claims are about the smallest |cos| between a singular vector and its
    principal direction, with confidence intervals over initial weights.

    Two identities are checked: the imbalance AᵀA − BBᵀ decays as exp(−4λt) with weight decay and is conserved
    otherwise (`imbalance`), and weight decay makes the decoder the transpose of the encoder (`transposition`).
    """

    singular_values: list[PositiveFloat] = parameter(
        [3.0, 2.2, 1.6, 1.1, 0.5], "Singular values of the data, in decreasing order.", fewest=2
    )
    latents: PositiveInt = parameter(3, "Number of latents, smaller than the number of singular values.")
    regularization: PositiveFloat = parameter(
        0.5, "Strength λ of the penalties, smaller than the square of every learned singular value."
    )
    scale: OpenFraction = parameter(1e-8, "Factor on the small initial weights.")
    starts: Annotated[int, Ge(3)] = parameter(12, "Number of standard initialisations.")
    times: Annotated[int, Ge(50)] = parameter(400, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the principal directions and of the initial weights.")

    reference = Reference.of(
        "D. Kunin, J. M. Bloom, A. Goeva, C. Seed, Loss Landscapes of Regularized Linear Autoencoders "
        "(arXiv 1901.08168)",
        "All critical points of regularised linear autoencoders are minima or strict saddles, indexed by sets of "
        "principal directions. Weight decay makes the layers transposes of each other and recovers the principal "
        "directions.",
    )
    title = "Saddles and minima of linear autoencoders"
    question = "When does an autoencoder learn the principal directions of its data, and in which order?"
    equation = r"L = \| X - X A B \|^2 + \lambda \left( \| A \|^2 + \| B \|^2 \right)"
    minutes = 0.5
    theory = "critical points of linear autoencoders"
    task = "data with singular values {singular_values}"
    trains = "linear autoencoder with {latents} latents"
    flow = "gradient flow"
    along = ("time", "level", "seed")
    labelled = {
        "penalty": PENALTIES,
        "time": "experiment.times",
        "convergence_time": "experiment.convergence_times",
        "level": "_levels",
    }
    symbols = {"start": "", "branch": "", "seed": ""}
    figures, meaning = page.figures, page.meaning
    names = {
        "ladder_loss": ("loss of the last visited saddle", "1"),
        "saddle_loss": ("loss at the saddle", "1"),
        "saddle_hessian": ("eigenvalue of the Hessian at the saddle", "1"),
        "imbalance": ("imbalance of the layers, ‖AᵀA − BBᵀ‖", "1"),
        "decoder_strength": ("singular value of the decoder", "1"),
        "transposition": ("transposition of the layers, 1 − ‖A − Bᵀ‖²/(‖A‖² + ‖B‖²)", "1"),
        "final_loss": ("loss after convergence", "1"),
        "direction_overlap": ("smallest |cos| between singular vectors and principal directions", "1"),
        "small_direction_overlap": ("smallest |cos| to a principal direction, from small weights", "1"),
        "encoder_weight": ("encoder weight", "1"),
        "decoder_weight": ("decoder weight", "1"),
        "penalty": ("penalty", "1"),
        "level": ("number of learned directions", "1"),
        "convergence_time": ("time since the standard initialisation", "gradient-flow time"),
        "plane_time": ("time in the plane", "gradient-flow time"),
        "eigenvalue": ("index of the eigenvalue", "1"),
        "branch": ("branch of the critical set", "1"),
        "manifold_point": ("point on the critical set", "1"),
        "start": ("initial weights", "1"),
    }
    tolerance = curve_tolerance(
        loss=_QUADRATIC,
        saddle_loss=_QUADRATIC,
        saddle_hessian=_SPECTRUM,
        final_loss=_EXACT,
        decoder_strength=_EXACT,
        imbalance=_EXACT,
        transposition=_EXACT,
    )
    checks = ("imbalance", "imbalance_maximum", "transposition", "transposition_maximum")
    deciding_claims = ("weight decay recovers", "no penalty does not recover", "product penalty does not recover")
    tiny = {"singular_values": [2.5, 1.5, 0.5], "latents": 2, "starts": 8, "times": 200}

    @functools.cached_property
    def experiment(self) -> Experiment:
        """Training, measurements and predictions with the fields of the study."""
        return Experiment(self)

    def check(self) -> None:
        """Check that the directions can be learned one at a time."""
        values = np.asarray(self.singular_values)
        self.require(
            (np.diff(values) < 0).all(), "singular_values", "sort the values in decreasing order, and drop repeats"
        )
        self.require(self.latents < len(values), "latents", "choose fewer latents than singular values")
        squares = values[: self.latents + 1] ** 2
        least = float(squares[-2])
        self.require(self.regularization < least, "regularization", f"choose a value below {least:g}")
        self.require(
            (np.abs(values**2 - self.regularization) > 1e-3 * self.regularization).all(),
            "regularization",
            "choose a value that differs from every squared singular value",
        )
        # At a saddle, the weights of the next direction have grown from ε to about ε^((1 − r)/2), where r < 1 is the
        # ratio of its rate to that of the direction learned before it.
        ratio = max(
            *((s[1:] / s[:-1]).max() for s in (squares[:-1], squares[:-1] - self.regularization) if len(s) > 1), 0
        )
        share = self.scale ** ((1 - ratio) / 2)
        problem = (
            f"with scale {self.scale:g}, the next direction has weights of {share:.2g} at a saddle, not below {_SHARE}"
        )
        self.require(
            share < _SHARE, "scale", "choose a smaller scale, or singular values further apart", problem=problem
        )

    def trained(self) -> Values:
        """Train from small and from standard initial weights."""
        return self.experiment.trained()

    def claimed(self, found: Values) -> Sequence[Claim]:
        """Claims about which losses recover the principal directions."""
        return self.experiment.claimed(found)

    def exact(self) -> Values:
        """The closed forms of the losses, Hessian spectra and minima."""
        return self.experiment.exact()

    @property
    def _levels(self) -> np.ndarray:
        return np.arange(self.latents + 1)
