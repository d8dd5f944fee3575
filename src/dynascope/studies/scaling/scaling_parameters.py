"""The loss of a model that has neurons for its most frequent skills only, against their number."""

from __future__ import annotations

from dynascope.studies import Reference, Values, curve_tolerance
from dynascope.studies.fields import count
from dynascope.studies.scaling.skill_losses import losses_of_sizes
from dynascope.studies.scaling.skill_simulation import FITTED, SkillScaling, exponent_chart, law_chart, ratio_chart
from dynascope.theory import papers
from dynascope.theory.scaling_laws import fit, missing_loss, parameter_law

_LOSS = (1e-12, "the law is an exact sum, and training goes on until no digit of it is left to learn")
_EXPONENT = (
    2e-3,
    "N + ½ leaves a correction of the order 1/N², whose largest effect is 1.3e-3, from 5 max(1, α) neurons on",
)
_PREFACTOR = (5e-3, "as for the exponent, and extrapolated to a single neuron")


class ScalingParameters(SkillScaling):
    """The loss of the multilinear model after long training with N neurons, which falls as N^−α.

    Compared are the loss, itself and over the power law A_N (N + ½)^−α, and the exponent and prefactor of a fit to it,
    where the loss of the skills that an infinite task would have too is added first.
    """

    skills: int = count(50_000, "Number of skills.")
    fewest_neurons: int = count(
        10, "Neurons of the smallest model, at least five, and five times the largest exponent."
    )
    most_neurons: int = count(3000, "Neurons of the largest one, fewer than skills.")
    sizes: int = count(13, "Number of models, at about equal ratios; a power law is fitted to three or more.", least=3)

    reference = Reference.of(
        papers.SKILLS,
        "After long training the loss of the multilinear model falls with the number of its neurons by the power α, "
        "with a prefactor that is known.",
    )
    law = "parameters"
    told = (
        *SkillScaling.told,
        "{skills} skills, of which each model has a neuron for its most frequent ones, and fresh samples.",
        "Training goes on until nothing that there are neurons for is left to learn.",
    )
    axes = ("exponent", "neurons")
    along = ("neurons", "exponent")
    title = "The scaling law of model size"
    question = "How much does a larger model help when most of what there is to learn is rare?"
    figures = (
        law_chart(
            "neurons",
            "The loss after long training with so many neurons. Straight and dashed is the power law of endlessly "
            "many skills; dashed through the points is the exact law for as many as there are.",
            points=True,
        ),
        ratio_chart(
            "neurons",
            "The same loss over its power law, which is that of endlessly many skills: with {parameters.skills} skills "
            "less is left to learn, the more so the smaller α is.",
            points=True,
        ),
        exponent_chart("α"),
    )
    meaning = (
        "Models of {parameters.fewest_neurons} to {parameters.most_neurons} neurons are trained to the end on "
        "{parameters.skills} skills, the k-th of which is asked for with a frequency in proportion to 1/k¹⁺ᵅ. A "
        "model learns one skill with each neuron, the most frequent first, and lacks the rest. With what endlessly "
        "many skills would add, its loss falls with the fitted exponent "
        f"{FITTED}: faster than with time or data, where it is α/(α + 1). In the model a neuron is a skill; a network "
        "needs several for one, and does not always take the most frequent first (see the study emergence-parameters)."
    )
    minutes = 0.2
    tolerance = curve_tolerance(loss=_LOSS, loss_over_law=_LOSS, decay_exponent=_EXPONENT, prefactor=_PREFACTOR)
    tiny = {"exponents": [0.4, 0.8], "skills": 5000, "most_neurons": 300, "sizes": 9}

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
        """What the skills without a neuron cost, and the power law in it."""
        size = {"target_scale": self.target_scale, "skills": self.skills}
        losses = [parameter_law(self._amounts, alpha, **size) for alpha in self._exponents]
        return self._expected(losses, self._amounts + 0.5)

    def check(self) -> None:
        """The smallest model follows the law, and the largest one has something left to learn."""
        super().check()
        self._check_span("neurons")
        more = "choose five times the largest exponent or more, and at least five"
        self.require(self.fewest_neurons >= 5 * max(1, *self.exponents), "fewest_neurons", more, beside="exponents")
        fewer = "choose fewer than skills, so that something is left to learn"
        self.require(self.most_neurons < self.skills, "most_neurons", fewer, beside="skills")
