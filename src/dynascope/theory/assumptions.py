"""Assumptions that theories make about data, network, initialisation and training, each measured by a number.

A theory declares its assumptions with `domain.covers`; `theory.which` measures them for a task and a network.
"""

from __future__ import annotations

import dataclasses

__all__ = [
    "ALIGNED_LAYERS",
    "BALANCED_LAYERS",
    "CENTRED_DATA",
    "ENOUGH_NEURONS",
    "ENOUGH_SAMPLES",
    "EQUAL_RATES",
    "EQUAL_WEIGHTS",
    "EQUAL_WIDTHS",
    "FULL_BATCHES",
    "INPUTS_ON_A_LINE",
    "LARGE_OUTPUT_WEIGHTS",
    "LAZY_TRAINING",
    "ONE_OUTPUT",
    "ORTHOGONAL_SAMPLES",
    "SEPARATED_TIMES",
    "SMALL_START",
    "SMALL_STEPS",
    "UNCORRELATED_INPUTS",
    "WHITE_INPUTS",
    "Assumption",
]


@dataclasses.dataclass(frozen=True)
class Assumption:
    """An assumption of a theory; assumptions with the same name compare equal.

    Attributes:
        name: Name of two or three words, such as "white inputs".
        meaning: Plain statement of the assumption.
        measure: Definition of the number that measures the violation.
        limit: Largest value of this number at which the assumption holds.
        almost: Largest value at which the theory is still approximately valid; equal to `limit` if the theory fails
            beyond it.
        growth: Effect of a larger violation on the prediction.
        remedy: What the user can do about a violation.
    """

    name: str
    meaning: str = dataclasses.field(compare=False)
    measure: str = dataclasses.field(compare=False)
    limit: float = dataclasses.field(compare=False)
    almost: float = dataclasses.field(compare=False)
    growth: str = dataclasses.field(compare=False)
    remedy: str = dataclasses.field(compare=False)

    def costing(self, growth: str) -> Assumption:
        """Return a copy with a different `growth`, for a theory on which a violation has another effect.

        Args:
            growth: Effect of a larger violation on the prediction of this theory.

        Example:
            >>> SMALL_START.costing("levels are off by less than a tenth") == SMALL_START
            True
        """
        return dataclasses.replace(self, growth=growth)


ENOUGH_SAMPLES = Assumption(
    "enough samples",
    "there are at least as many samples as inputs; with fewer samples, the inputs cannot be white",
    "fraction of the inputs in excess of the number of samples",
    limit=0,
    almost=0,
    growth="the theory does not apply",
    remedy="whiten the inputs in the subspace that the samples span: task.whitened()",
)
WHITE_INPUTS = Assumption(
    "white inputs",
    "the inputs are uncorrelated and have equal variances",
    "largest deviation of an eigenvalue of E[x xᵀ] from the mean eigenvalue, relative to the mean",
    limit=1e-6,
    almost=0.3,
    growth="times are wrong by about this fraction, and by more for the last jumps",
    remedy="whiten the inputs: task.whitened(), whose transform maps results back",
)
UNCORRELATED_INPUTS = Assumption(
    "uncorrelated inputs",
    "the inputs are uncorrelated",
    "largest absolute correlation between two inputs",
    limit=1e-6,
    almost=0.1,
    growth="strengths are wrong by about this fraction",
    remedy="rotate the inputs onto their principal axes, or whiten them: task.whitened()",
)
INPUTS_ON_A_LINE = Assumption(
    "inputs on a line",
    "all inputs are proportional to one variable",
    "fraction of the input power outside the main direction",
    limit=1e-12,
    almost=0.05,
    growth="the prediction omits the part of the target that the other directions explain",
    remedy="keep one input, or project the inputs onto one direction",
)
ORTHOGONAL_SAMPLES = Assumption(
    "orthogonal samples",
    "the samples are pairwise orthogonal",
    "largest absolute cosine of the angle between two samples",
    limit=1e-9,
    almost=1e-9,
    growth="the theory does not apply",
    remedy="use alternating gradient flow, which accepts any samples",
)
ONE_OUTPUT = Assumption(
    "one output",
    "there is one target column",
    "number of outputs",
    limit=1,
    almost=1,
    growth="the theory does not apply",
    remedy="keep one target with task.only(target_name)",
)
SMALL_START = Assumption(
    "small initialisation",
    "the initial weights are small",
    "norm of the weights divided by the norm at scale 1; PyTorch's default initialisation has the "
    "ratio √((width + outputs)/(3 (inputs + outputs)))",
    limit=1e-2,
    almost=0.3,
    growth="times have a relative error of up to 2.2/log(1/scale)",
    remedy="multiply all weights by the same small factor, such as 0.01",
)
BALANCED_LAYERS = Assumption(
    "balanced layers",
    "W₂ W₂ᵀ − W₁ᵀ W₁ is a multiple of the identity for each pair of neighbouring layers",
    "distance of the conserved matrices W₂ W₂ᵀ − W₁ᵀ W₁ from multiples of the identity, relative to the layers",
    limit=1e-6,  # rounding of balanced weights in single precision
    almost=0.1,
    growth="the function is wrong by less than this fraction, and by much less at small initialisation",
    remedy="initialise with networks.balanced_linear (two layers) or multiples of orthogonal matrices (more layers)",
)
ALIGNED_LAYERS = Assumption(
    "aligned layers",
    "the initial map has the same singular vectors as the target map",
    "fraction of the initial map outside the singular vectors of the target map",
    limit=1e-6,
    almost=0.1,
    growth="strengths are wrong by about this fraction",
    remedy="initialise along the singular vectors, or use deep-isotropic, which does not require alignment",
)
EQUAL_WEIGHTS = Assumption(
    "equal weights",
    "all initial weights have the same absolute value",
    "range of the absolute initial weights, relative to the largest",
    limit=1e-8,
    almost=1e-8,
    growth="the theory does not apply",
    remedy="keep the default initialisation of the network",
)
LARGE_OUTPUT_WEIGHTS = Assumption(
    "large output weights",
    "the absolute output weight of each neuron is at least the norm of its input weights",
    "largest relative shortfall of an output weight below the norm of the input weights of the neuron",
    limit=1e-9,
    almost=1,
    growth="an output weight may change sign before its neuron grows, and the neuron then fits other samples: a narrow "
    "network may miss jumps, whereas a wide network is hardly affected",
    remedy="use alternating gradient flow, which integrates every neuron",
)
EQUAL_WIDTHS = Assumption(
    "equal widths",
    "every layer has as many neurons as there are inputs and outputs",
    "range of the layer widths, relative to the largest",
    limit=0,
    almost=0,
    growth="the theory does not apply",
    remedy="use equal numbers of inputs, neurons and outputs",
)
ENOUGH_NEURONS = Assumption(
    "enough neurons",
    "there is a neuron for every direction of the target map",
    "rank of the best linear map in excess of the number of neurons",
    limit=0,
    almost=float("inf"),
    growth="the prediction has one jump per neuron; it omits later exchanges of learned directions for stronger ones",
    remedy="use a wider network",
)
SEPARATED_TIMES = Assumption(
    "separated times",
    "each jump ends before the next one begins",
    "largest s^(1 − τ/τ′) over pairs of consecutive jumps at limit times τ < τ′ for initial scale s: near 0 if the "
    "later jump has not begun, 1 if the jumps coincide",
    limit=0.5,
    almost=float("inf"),
    growth="neighbouring jumps shift each other by up to an eighth of this number and can merge",
    remedy="use smaller initial weights to separate the jumps, or use the predicted loss curve at this scale",
)
CENTRED_DATA = Assumption(
    "centred data",
    "inputs and targets have mean zero, so the biases of a linear network decay to zero",
    "√(x̄ᵀ E[x xᵀ]⁻¹ x̄) for the mean x̄ of the inputs, or the norm of the mean target relative to the root mean square "
    "norm of the targets; the larger of the two",
    limit=1e-5,
    almost=0.1,
    growth="biases learn the means, and losses are too large by up to the square of this fraction of the initial loss",
    remedy="subtract the means from inputs and targets, or omit the biases",
)
LAZY_TRAINING = Assumption(
    "lazy training",
    "training hardly changes the weights, relative to their norm",
    "change of the weights in linearised training, relative to their norm (on a subset of large data sets)",
    limit=0.05,
    almost=0.5,
    growth="losses are wrong by up to about a seventh of this fraction of the initial loss",
    remedy="use larger initial weights by choosing a larger scale (a larger width hardly helps, except in the standard "
    "or NTK parametrisation); for feature learning from small weights, use dynascope predict",
)
SMALL_STEPS = Assumption(
    "small steps",
    "gradient steps are small enough to approximate gradient flow",
    "learning rate times the largest curvature, relative to the value 2 at which training diverges",
    limit=0.05,
    almost=0.5,
    growth="times are wrong by about this fraction in the direction of largest curvature; beyond 1, training diverges",
    remedy="use a smaller learning rate",
)
EQUAL_RATES = Assumption(
    "equal rates",
    "all layers have the same learning rate",
    "range of the learning rates of the layers, relative to the largest",
    limit=0,
    almost=0.9,
    growth="losses are wrong by up to a tenth of this fraction of the initial loss, if time is the number of steps "
    "multiplied by the geometric mean of the rates",
    remedy="use one rate for all layers; or predict an equivalent network with the geometric mean of the rates: divide "
    "the weights of each layer by the square root of the ratio of its rate to that mean",
)
FULL_BATCHES = Assumption(
    "full batches",
    "every step uses all samples",
    "fraction of the samples that a batch omits",
    limit=0,
    almost=1,
    growth="minibatch noise makes the losses fluctuate, more strongly at larger learning rates",
    remedy="use larger batches or a smaller learning rate",
)
