"""Long names and units of quantities and axes shared by several subjects; studies add their own.

Losses, accuracies, fractions, strengths and exponents are dimensionless. "clock" stands for the time axis of the
record.
"""

from __future__ import annotations

from dynascope.results.staircase_names import JUMP_STEP, JUMP_TIMES, WORDS

__all__ = ["NONE", "QUANTITIES", "STEPS", "TIME"]

NONE = "1"  # the unit of a pure number
TIME = "gradient-flow time"
STEPS = "optimiser steps"

_UNITS = dict.fromkeys(JUMP_TIMES, TIME) | {JUMP_STEP: STEPS}

QUANTITIES: dict[str, tuple[str, str]] = {
    **{name: (words, _UNITS.get(name, NONE)) for name, words in WORDS.items()},
    # Axes
    "time": ("time", TIME),
    "step": ("step", STEPS),
    "sampled_step": ("sampled step", STEPS),
    "seed": ("seed", NONE),
    "run": ("run", NONE),
    "start": ("initial weights", NONE),
    "scale": ("initialisation scale", NONE),
    "learning_rate": ("learning rate", NONE),
    "sample": ("sample", NONE),
    "samples": ("training samples", "samples"),
    "neurons": ("neurons", "neurons"),
    "neuron": ("neuron", NONE),
    "weight": ("weight of a neuron", NONE),
    "layer": ("layer", NONE),
    "mode": ("mode", NONE),
    "level": ("plateau", NONE),
    "jump": ("jump", NONE),
    "feature": ("feature", NONE),
    "target": ("output", NONE),
    "class": ("class label", NONE),
    "group": ("group of weights", NONE),
    "charge": ("conserved quantity", NONE),
    "part": ("parameter that a symmetry acts on", NONE),
    "imbalance": ("imbalance δ of the layers", NONE),
    "balance": ("imbalance λ between the layers", NONE),
    "scaling_parameter": ("scaling parameter", NONE),
    "dial": ("scaled parameter", NONE),
    "architecture": ("kind of network", NONE),
    "hypothesis": ("hypothesis", NONE),
    # Losses, accuracies and the end of training
    "loss": ("loss", NONE),
    "test_loss": ("test loss", NONE),
    "test_error": ("test error", NONE),
    "accuracy": ("training accuracy", NONE),
    "fitted": ("fitted function", NONE),
    "train_step": ("step at which the training data are fitted", STEPS),
    "test_step": ("step at which the network generalises", STEPS),
    "lag": ("lag behind the interpolant", TIME),
    "delay": ("delay from fitting to generalising", "clock"),
    "grokking_time": ("time at which the network generalises", TIME),
    "descent_rate": ("rate of decrease of the loss", NONE),
    "stop_time": ("time at which training stopped", "clock"),
    "stop_reason": ("reason why training stopped", NONE),
    "diverged_step": ("step of divergence", STEPS),
    "diverged_loss": ("loss at divergence", NONE),
    "training_step": ("training step", NONE),
    "training_epoch": ("training epoch", NONE),
    # Features learned in a staircase
    "coefficient": ("coefficient of the linear map", NONE),
    "input_feature": ("input pattern", NONE),
    "output_feature": ("output pattern", NONE),
    "learned_map": ("learned linear map", NONE),
    "main_map": ("main part of the learned linear map", NONE),
    "learned_direction": ("learned direction, in standard deviations of the inputs", NONE),
    "output_effect": ("effect of the neuron on the output", NONE),
    "singular_value": ("singular value", NONE),
    "activated": ("whether the neuron becomes active", NONE),
    "returned": ("whether the neuron becomes dormant again", NONE),
    "growth_rate": ("growth rate", NONE),
    "activation_time": ("time at which the neuron activates", TIME),
    # Weights, modes and alignment
    "weights": ("input weight", NONE),
    "coefficients": ("coefficient", NONE),
    "mode_strength": ("strength of the mode", NONE),
    "learned_fraction": ("learned fraction of the target", NONE),
    "first_norm": ("norm of the first layer", NONE),
    "second_norm": ("norm of the second layer", NONE),
    "alignment": ("alignment of the layers", NONE),
    "gap": ("gap after the largest intensities, decades", NONE),
    "settled_direction": ("weights of the new neuron on the plateau, at unit norm", NONE),
    "settled_norm": ("norm of the weights of the new neuron on the plateau", NONE),
    "direction": ("direction of the input weights", NONE),
    "angle": ("angle of the input weights", "degrees"),
    "size": ("size", NONE),
    "sign": ("sign", NONE),
    "speed": ("learning speed", NONE),
    "time_scale": ("time scale", TIME),
    # Kernels and regimes
    "kernel_distance": ("distance of the kernel from its initial value", NONE),
    "kernel_change": ("relative change of the kernel", NONE),
    "kernel_exponent": ("width exponent of the kernel", NONE),
    "regime": ("regime", NONE),
    # Features
    "intensity": ("intensity of the feature", NONE),
    "quality": ("fraction of the target explained by the feature", NONE),
    "cumulative_quality": ("fraction of the target explained by the strongest features", NONE),
    "utilization": ("fraction of the outputs explained by the feature", NONE),
    "cumulative_utilization": ("fraction of the outputs explained by the strongest features", NONE),
    "total_utilization": ("fraction of the outputs explained by all features", NONE),
    "learnability": ("learnability", NONE),
    "constant_overlap": ("overlap of the features with a constant", NONE),
    "effective_dimension": ("effective dimension of the features", NONE),
    "effective_dimension_all_modes": ("effective dimension of all modes", NONE),
    "effective_dimension_quality": ("effective dimension of the quality", NONE),
    "effective_dimension_utilization": ("effective number of features used by the outputs", NONE),
    "kappa": ("distance to minimum features κ", NONE),
    "test_kappa": ("distance to minimum features κ on test data", NONE),
    "kappa_cka": ("distance to minimum features κ", NONE),
    "dead_fraction": ("fraction of dead neurons", NONE),
    "active_fraction": ("fraction of active neurons", NONE),
    "class_mean_norm": ("norm of the class mean", NONE),
    "between_class_share": ("fraction of the variance between classes", NONE),
    "nc1": ("within-class over between-class variability (NC1)", NONE),
    "nc2_angle": ("deviation of the angles of the class means (NC2)", NONE),
    "nc2_norm": ("deviation of the norms of the class means (NC2)", NONE),
    "nc3": ("distance between classifier and class means (NC3)", NONE),
    "nc4": ("disagreement with the nearest class mean (NC4)", NONE),
    # Effects
    "change": ("change in the metric", NONE),
    "low": ("lower end of the interval", NONE),
    "high": ("upper end of the interval", NONE),
    "holds": ("whether the hypothesis holds", NONE),
    "why_undecided": ("why the hypothesis is undecided", NONE),
    "statement": ("claim", NONE),
}
