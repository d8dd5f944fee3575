"""What theories assume of data, network, start and training, each as a number that can be measured.

A theory states its assumptions by these (`domain.covers`); `which` measures them on a task and a network.
"""

from __future__ import annotations

import dataclasses

__all__ = [
    "ALIGNED_LAYERS",
    "BALANCED_LAYERS",
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
    """One thing that theories assume; two are the same where their names are.

    Attributes:
        name: In two or three words.
        meaning: What it says, in plain words.
        measure: What the number says of it, which is zero where it holds exactly.
        limit: The number up to which it holds.
        almost: The number up to which a theory still says something; `limit` where anything beyond is another case.
        growth: What a larger number does to what is predicted.
        remedy: What to do about it.
    """

    name: str
    meaning: str = dataclasses.field(compare=False)
    measure: str = dataclasses.field(compare=False)
    limit: float = dataclasses.field(compare=False)
    almost: float = dataclasses.field(compare=False)
    growth: str = dataclasses.field(compare=False)
    remedy: str = dataclasses.field(compare=False)

    def costing(self, growth: str) -> Assumption:
        """The same of a theory that it costs something else.

        Args:
            growth: What a larger number does to what this theory predicts.

        Example:
            >>> SMALL_START.costing("levels are off by less than a tenth") == SMALL_START
            True
        """
        return dataclasses.replace(self, growth=growth)


ENOUGH_SAMPLES = Assumption(
    "enough samples",
    "there are at least as many samples as inputs, without which these cannot be white",
    "share of the inputs beyond the number of samples",
    limit=0,
    almost=0,
    growth="the theory does not apply",
    remedy="whiten the inputs on what the samples span, which takes fewer coordinates: task.whitened()",
)
WHITE_INPUTS = Assumption(
    "white inputs",
    "no two inputs are correlated, and all have the same spread",
    "largest distance of an eigenvalue of E[x xᵀ] from their mean, over the mean",
    limit=1e-6,
    almost=0.3,
    growth="times are off by about as much, more for what is learned last",
    remedy="whiten the inputs: task.whitened(), whose transform maps results back",
)
UNCORRELATED_INPUTS = Assumption(
    "uncorrelated inputs",
    "no two inputs are correlated",
    "largest correlation of two inputs",
    limit=1e-6,
    almost=0.1,
    growth="strengths are off by about as much",
    remedy="turn the inputs to their principal axes, or whiten them: task.whitened()",
)
INPUTS_ON_A_LINE = Assumption(
    "inputs on a line",
    "all inputs rise and fall together, as if there were one",
    "share of the power of the inputs outside their main direction",
    limit=1e-12,
    almost=0.05,
    growth="what the other directions explain of the target is not in it",
    remedy="keep one input, or project the inputs on one direction",
)
ORTHOGONAL_SAMPLES = Assumption(
    "orthogonal samples",
    "every two samples are at right angles",
    "largest cosine of the angle between two samples, without its sign",
    limit=1e-9,
    almost=1e-9,
    growth="the theory does not apply",
    remedy="use alternating gradient flow, which takes any samples",
)
ONE_OUTPUT = Assumption(
    "one output",
    "there is one target column",
    "number of outputs beyond the first",
    limit=0,
    almost=0,
    growth="the theory does not apply",
    remedy="keep one target with `only`",
)
SMALL_START = Assumption(
    "small start",
    "the initial weights are small",
    "norm of the weights over that of weights at unit scale; PyTorch's default initialisation is at "
    "√((width + outputs)/(3 (inputs + outputs)))",
    limit=1e-2,
    almost=0.3,
    growth="times are off by up to 2.2/log(1/scale) of them",
    remedy="make all weights smaller by one factor, such as 0.01",
)
BALANCED_LAYERS = Assumption(
    "balanced layers",
    "neighbouring layers start equally strong in every hidden direction, or one stronger by the same in all",
    "distance of the conserved matrices W₂ W₂ᵀ − W₁ᵀ W₁ from multiples of the identity, over the size of the layers",
    limit=1e-6,  # what is left of balance by weights of single precision
    almost=0.1,
    growth="the function is off by less than that, and hardly at all from small starts",
    remedy="start balanced: networks.balanced_linear of two layers; of more, multiples of orthogonal matrices",
)
ALIGNED_LAYERS = Assumption(
    "aligned layers",
    "the network starts along the very directions that the targets have in the inputs",
    "share of the first map outside the singular vectors of the target",
    limit=1e-6,
    almost=0.1,
    growth="strengths are off by about as much",
    remedy="start along those directions, or use deep-isotropic, which does without them",
)
EQUAL_WEIGHTS = Assumption(
    "equal weights",
    "all initial weights are of the same size",
    "range of the weights of the start over the largest",
    limit=1e-8,
    almost=1e-8,
    growth="the theory does not apply",
    remedy="start as the network is initialised",
)
LARGE_OUTPUT_WEIGHTS = Assumption(
    "large output weights",
    "the output weight of each neuron is at least as large as all of its input weights together",
    "by how much the output weight of a neuron is below the norm of its input weights, over that norm, at most",
    limit=1e-9,
    almost=1,
    growth="neurons may change the sign of their output weight before they grow, and learn other data; of few neurons "
    "jumps may be missing, and of many hardly anything changes",
    remedy="use alternating gradient flow, which follows every neuron",
)
EQUAL_WIDTHS = Assumption(
    "equal widths",
    "there are as many neurons in each layer as inputs and outputs",
    "range of the widths of the layers over the largest",
    limit=0,
    almost=0,
    growth="the theory does not apply",
    remedy="give all layers as many neurons as there are inputs and outputs",
)
ENOUGH_NEURONS = Assumption(
    "enough neurons",
    "there are neurons for every direction that is to be learned",
    "what the best map has of a higher rank than there are neurons",
    limit=0,
    almost=float("inf"),
    growth="as many jumps are told as there are neurons; where those do not explain most, they are exchanged later for "
    "what does, which is not told",
    remedy="give the network more neurons",
)
SEPARATED_TIMES = Assumption(
    "separated times",
    "each jump is over before the next one begins",
    "largest s^(1 − τ/τ′) of two jumps that follow one another, which white inputs would have at times τ < τ′ from "
    "weights of scale s: 0 where the later one still sleeps, 1 where they coincide",
    limit=0.5,
    almost=float("inf"),
    growth="neighbouring jumps shift each other in time by up to an eighth of this ratio and can merge",
    remedy="start from smaller weights, from which times lie further apart, or read the curve at this scale",
)
LAZY_TRAINING = Assumption(
    "lazy training",
    "training hardly moves the weights, over their size",
    "how far the linearised network moves the weights, over their norm (on a part of the samples, if there are many)",
    limit=0.05,
    almost=0.5,
    growth="losses are off by up to about a seventh of that share of the first one",
    remedy="start from larger weights, or take a wider network; from small ones it learns features: dynascope predict",
)
SMALL_STEPS = Assumption(
    "small steps",
    "steps of descent are small enough to follow the slope of the loss",
    "learning rate times the largest curvature, over the 2 at which steps diverge",
    limit=0.05,
    almost=0.5,
    growth="times are off by about as much where the curvature is largest, and beyond 1 steps diverge",
    remedy="take a smaller learning rate",
)
EQUAL_RATES = Assumption(
    "equal rates",
    "all layers learn at one rate",
    "range of the learning rates of the layers, over the largest",
    limit=0,
    almost=0.9,
    growth="losses are off by up to a tenth of that share of the first one, where times are steps times the geometric "
    "mean of the rates",
    remedy="take one rate; or predict the network that has one, their geometric mean: divide the weights of each layer "
    "by the root of its rate over that mean",
)
FULL_BATCHES = Assumption(
    "full batches",
    "every step sees all samples",
    "share of the samples that a batch leaves out",
    limit=0,
    almost=1,
    growth="losses scatter by the noise of the batches, more for larger steps",
    remedy="take larger batches or smaller steps",
)
