"""Unlearned query and value biases break symmetries of attention, and not all optimisers preserve the others."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.symmetry.attention_symmetry import page
from dynascope.studies.symmetry.attention_symmetry.experiment import Experiment
from dynascope.studies.symmetry.attention_symmetry.layers import PAIRS, VARIANTS
from dynascope.studies.symmetry.attention_symmetry.optimizers import OPTIMIZERS
from dynascope.theory import papers
from dynascope.validation.bounded import Seed

_COUNT = (0.0, "both numbers are integers, so they must agree exactly")
_IDENTITY = (1e-9, "the identity is exact; only rounding errors remain")
_ROUNDING = 1e-8  # change of a charge, relative to the squared norm of the weights
_CHANGED = 1e-4  # smallest change of a charge that counts as broken
_MOVED = 0.1  # smallest relative change of the weights for which conserved charges are informative
_DIFFERENT = 0.01  # smallest distance of runs of an optimiser that does not commute


class AttentionSymmetry(ClaimsStudy):
    """Counts the symmetries of attention layers with query and value biases, and tests which optimisers preserve them.

    In an attention head of width d, an invertible d × d matrix can be moved from the queries to the keys, or from the
    values to the outputs, without any effect on the outputs. Gradient flow therefore conserves d(d + 1)/2 charges of
    each pair, the entries of Q Qᵀ − K Kᵀ and V Vᵀ − Oᵀ O. A constant bias b of the queries or values leaves only the
    matrices G with Gᵀ b = b, and d(d − 1)/2 charges. If a learned bias is added to the constant one, all charges are
    conserved again, but not if the unlearned bias is drawn again for every batch.

    Layers with each kind of bias are trained by gradient flow; a bias that is drawn again is represented by the mean
    loss over several draws. For each layer, the study counts the independent combinations of charges that do not change
    in training, and the charges that analysing its program finds. Both numbers must equal the prediction. Claims state
    that the charges change inside the span of the bias and not outside. As a check, the symmetry defects of a constant
    bias, the derivatives of the loss along the broken symmetry, must be matrices of rank one, −∂L/∂b bᵀ.

    Several optimisers then train the layer without biases from weights with rotated queries and keys. Heavy-ball
    descent, energy-conserving descent (ECD), BBI and SOAP must reach the rotated weights of the original run, and Adam
    must not.
    """

    biases: list[str] = parameter(list(VARIANTS), "Kinds of biases of the layers.", options=list(VARIANTS))
    optimizers: list[str] = parameter(list(OPTIMIZERS), "Optimisers.", options=list(OPTIMIZERS))
    width: Annotated[int, Interval(ge=2, le=6)] = parameter(4, "Width d of the tokens and of the attention head.")
    tokens: Annotated[int, Interval(ge=2, le=16)] = parameter(4, "Number of tokens per sample.")
    samples: Annotated[int, Ge(20)] = parameter(60, "Number of training samples.")
    draws: Annotated[int, Interval(ge=3, le=20)] = parameter(6, "Number of draws of resampled biases, above the width.")
    duration: Annotated[float, Interval(ge=5, le=50)] = parameter(10.0, "Training time of gradient flow.")
    times: Annotated[int, Ge(100)] = parameter(200, "Number of times at which charges are recorded.")
    steps: Annotated[int, Interval(ge=10, le=200)] = parameter(50, "Number of steps of each optimiser.")
    seed: Seed = parameter(0, "Seed of the layers, the data and the rotations.")

    reference = Reference.of(
        papers.BROKEN_ATTENTION,
        "Attention has rotational degrees of freedom that do not affect the outputs. Query and value biases that are "
        "drawn for every batch and not learned break this symmetry.",
    )
    theory = "symmetry generators of attention with unlearned biases"
    task = "regression on an attention layer without biases"
    notes = ("{samples} samples of {tokens} Gaussian tokens.",)
    trains = "attention layers with query and value biases"
    flow = "gradient flow, and optimisers"
    along = ("layer", "pair", "entry")
    labelled = {
        **{"layer": "biases", "pair": lambda _: list(PAIRS), "optimizer": "optimizers", "time": "experiment.times"},
        "entry": lambda study: list(range(study.width**2)),
        **{"step": lambda study: np.arange(1, study.steps + 1)},
    }
    title = "Symmetries of attention with biases"
    question = "Which symmetries of attention do biases break, and which optimisers preserve them?"
    figures, meaning = page.figures, page.meaning
    names = {
        "layer": ("biases", "1"),
        "pair": ("pair of weights", "1"),
        "optimizer": ("optimiser", "1"),
        "conserved_charges": ("conserved charges in training", "1"),
        "program_symmetries": ("charges found in the program", "1"),
        "defects": ("derivatives of the loss along the mixing of units, with constant biases", "1"),
        "entry": ("entry of the matrix, row by row", "1"),
        "outside": ("largest change of a charge outside the span of the biases, relative to the squared norm", "1"),
        "inside": ("largest change of the other charges, relative to the squared norm", "1"),
        "moved": ("distance from the initial weights, relative to their norm", "1"),
        "distance": ("distance from the rotated run, relative to the distance from the initial weights", "1"),
    }
    equation = r"G^\top b = b, \quad \frac{d}{dt} (Q Q^\top - K K^\top) = \nabla_b L \, b^\top + b \, \nabla_b L^\top"
    minutes = 1.0
    tolerance = curve_tolerance(conserved_charges=_COUNT, program_symmetries=_COUNT, defects=_IDENTITY)
    checks = ("defects", "defects_maximum")
    tiny = {
        **{"biases": ["no biases", "constant"], "optimizers": ["heavy ball", "Adam"], "width": 2, "tokens": 2},
        **{"samples": 20, "draws": 3, "times": 100, "steps": 10},
    }

    def check(self) -> None:
        """Require enough draws to break the symmetry completely."""
        self.require(self.draws > self.width, "draws", "choose more draws than the width", beside="width")

    @functools.cached_property
    def experiment(self) -> Experiment:
        """The layers, their charges and their symmetries."""
        return Experiment(self)

    def trained(self) -> Values:
        """Train all layers, record their charges, and count their symmetries."""
        return self.experiment.trained()

    def exact(self) -> Values:
        """The predicted number of charges of each pair."""
        return self.experiment.exact()

    def claimed(self, found: Mapping[str, Any]) -> list[Claim]:
        """Evaluate the claims about charges and about optimisers."""
        largest = {
            name: dict(zip(self.biases, np.max(found[name][1], axis=1), strict=True)) for name in ("outside", "inside")
        }
        moved = np.asarray(found["moved"][1])[:, -1].min()
        statement = "In every layer, the weights move by at least 10 % of their initial norm."
        claims = [Claim("weights move", statement, float(moved), least=_MOVED)]
        if conserved := self.experiment.with_charges:
            statement = (
                "Charges outside the span of the biases change only by numerical errors (largest change, relative to "
                "the squared norm of the weights)."
            )
            claims.append(
                Claim("outside", statement, float(max(largest["outside"][name] for name in conserved)), most=_ROUNDING)
            )
        claims += [
            Claim(
                f"inside, {name}",
                f"With {name} biases, charges inside the span of the biases change (largest change, relative to the "
                "squared norm of the weights).",
                float(largest["inside"][name]),
                least=_CHANGED,
            )
            for name in self.experiment.with_broken_charges
        ]
        for name, distances in zip(self.optimizers, found["distance"][1], strict=True):
            optimizer, distance = OPTIMIZERS[name], float(np.max(distances))
            statement = f"{name} {'commutes' if optimizer.commutes else 'does not commute'} with rotations of queries "
            statement += "and keys (largest distance between the runs)."
            least, most = (-np.inf, optimizer.largest) if optimizer.commutes else (_DIFFERENT, np.inf)
            claims.append(Claim(f"rotation, {name}", statement, distance, least=least, most=most))
        return claims

    @property
    def deciding_claims(self) -> tuple[str, ...]:
        """All claims except the one that the weights move."""
        experiment = self.experiment
        return (
            *["outside"] * bool(experiment.with_charges),
            *(f"inside, {name}" for name in experiment.with_broken_charges),
            *(f"rotation, {name}" for name in self.optimizers),
        )
