"""The scaling law for model size: the final loss of the multilinear model is a power law in the number of neurons."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge

from dynascope.results import Chart, Comparison
from dynascope.studies import Reference, Values, curve_tolerance, parameter
from dynascope.studies.scaling.skill_losses import losses_of_sizes
from dynascope.studies.scaling.skill_simulation import (
    SkillScaling,
    exponent_chart,
    fitted_exponents,
    law_chart,
    ratio_chart,
)
from dynascope.theory import papers
from dynascope.theory.scaling_laws import fit, missing_loss, parameter_law
from dynascope.validation.bounded import PositiveInt

_LOSS = (1e-12, "the law is an exact sum, and training converges to machine precision")
_EXPONENT = (
    2e-3,
    "the power law in N + ½ has a correction of order 1/N², at most 1.3e-3 for 5 max(1, α) neurons or more",
)
_PREFACTOR = (5e-3, "extrapolation to a single neuron magnifies the error of the exponent")


class ScalingParameters(SkillScaling):
    """Tests whether the loss of the multilinear model with N neurons after long training falls as N^(−α).

    In the multilinear model f = Σ_k a_k b_k g_k, each skill g_k has separate weights, and a_k b_k is its strength. The
    quantities compared with theory are the loss, its ratio to the power law A_N (N + ½)^(−α), and the exponent and
    prefactor of a fit. The fit corrects for the finite number of skills: it adds the predicted loss of the further
    skills that a task with infinitely many skills would contain.
    """

    skills: PositiveInt = parameter(50_000, "Number of skills.")
    fewest_neurons: PositiveInt = parameter(
        10, "Number of neurons in the smallest model, at least 5 and at least five times the largest exponent."
    )
    most_neurons: PositiveInt = parameter(3000, "Number of neurons in the largest model, less than `skills`.")
    sizes: Annotated[int, Ge(3)] = parameter(13, "Number of models, in an approximately geometric sequence of sizes.")

    reference = Reference.of(
        papers.SKILLS,
        "After long training, the loss of the multilinear model decays as N^(−α) with the number of neurons N, with a "
        "known prefactor.",
    )
    law = "parameters"
    notes = (
        *SkillScaling.notes,
        "{skills} skills; each model has one neuron for each of the most frequent skills. Every step uses fresh "
        "samples.",
        "Training continues until every skill with a neuron is learned.",
    )
    axes = ("exponent", "neurons")
    along = ("neurons", "exponent")
    title = "The scaling law for model size"
    question = "How fast does the loss decrease with model size if most skills are rare?"
    equation = r"L(N) = A_N \left( N + \frac{1}{2} \right)^{-\alpha}, \quad P(k) \propto k^{-(\alpha + 1)}"
    minutes = 0.2
    tolerance = curve_tolerance(loss=_LOSS, loss_over_law=_LOSS, decay_exponent=_EXPONENT, prefactor=_PREFACTOR)
    tiny = {"exponents": [0.4, 0.8], "skills": 5000, "most_neurons": 300, "sizes": 9}

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: the loss, the loss relative to its power law, and the fitted exponents."""
        caption = (
            "Loss after long training against the number of neurons. Straight dashed lines show the power laws for "
            f"infinitely many skills, and dashed curves show the exact law for {self.skills} skills."
        )
        ratio = (
            f"The same loss divided by the power law for infinitely many skills. With only {self.skills} skills, the "
            "remaining loss is smaller, so the ratio falls below one, most strongly for small α."
        )
        return [
            law_chart("neurons", caption, result, points=True),
            ratio_chart("neurons", ratio, points=True),
            exponent_chart("α"),
        ]

    def meaning(self, result: Comparison) -> str:
        """Explain how missing skills determine the loss of a small model, with the fitted exponents."""
        return (
            f"Models of {self.fewest_neurons} to {self.most_neurons} neurons are trained to convergence on "
            f"{self.skills} skills with frequencies proportional to 1/k¹⁺ᵅ. Each neuron learns one skill, the most "
            "frequent first, so the loss comes from the skills without a neuron. For infinitely many skills, theory "
            "predicts loss ∝ N^(−α), a faster decay than with training time or data, for which the exponent is "
            "α/(α + 1). The fitted exponent, corrected for the finite number of skills, is "
            f"{fitted_exponents(result)}. Neural networks need several neurons per skill and do not always "
            "learn the most frequent skill first, as the study emergence-parameters shows."
        )

    def trained(self) -> Values:
        """Train models of all sizes on fresh samples by gradient flow, and fit power laws."""
        losses, at = losses_of_sizes(self._exponents, self.skills, self._amounts, **self._model), self._amounts + 0.5
        window, scale = (self.fewest_neurons, self.most_neurons + 1), self.target_scale
        missing = [missing_loss(alpha, self.skills + 0.5, target_scale=scale) for alpha in self._exponents]
        fits = [
            fit(each, at, window=window, floor=0.0, missing=known) for each, known in zip(losses, missing, strict=True)
        ]
        return self._fitted(losses, at, fits)

    def exact(self) -> Values:
        """The loss of the skills without a neuron and its power law."""
        size = {"target_scale": self.target_scale, "skills": self.skills}
        losses = [parameter_law(self._amounts, alpha, **size) for alpha in self._exponents]
        return self._expected(losses, self._amounts + 0.5)

    def check(self) -> None:
        """Require that the smallest model follows the power law and that the largest model lacks some skills."""
        super().check()
        self._check_span("neurons")
        more = "choose at least 5 and at least five times the largest exponent"
        self.require(self.fewest_neurons >= 5 * max(1, *self.exponents), "fewest_neurons", more, beside="exponents")
        fewer = "choose a number below skills, so that the largest model lacks some skills"
        self.require(self.most_neurons < self.skills, "most_neurons", fewer, beside="skills")
