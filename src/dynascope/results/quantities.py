"""Long names and units of quantities and axes that several subjects measure; a study names its own.

Losses, accuracies, shares, strengths and exponents are pure numbers. "clock" stands for the clock of the record.
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
    # Clocks and axes
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
    "part": ("part of a symmetry, which is one parameter", NONE),
    "imbalance": ("imbalance δ of the layers", NONE),
    "balance": ("balance λ of the layers", NONE),
    "scaling_parameter": ("scaling parameter", NONE),
    "dial": ("what is scaled", NONE),
    "architecture": ("kind of network", NONE),
    "hypothesis": ("hypothesis", NONE),
    # Losses, accuracies and where training ends
    "loss": ("loss", NONE),
    "test_loss": ("test loss", NONE),
    "test_error": ("test error", NONE),
    "accuracy": ("training accuracy", NONE),
    "fitted": ("fitted function", NONE),
    "train_step": ("step at which the training data is fitted", STEPS),
    "test_step": ("step at which the network generalises", STEPS),
    "lag": ("lag behind the interpolant", TIME),
    "delay": ("delay from fitting to generalising", "clock"),
    "grokking_time": ("time at which the network generalises", TIME),
    "descent_rate": ("rate at which the loss falls", NONE),
    "stop_time": ("time at which training stopped", "clock"),
    "stop_reason": ("why training stopped", NONE),
    "diverged_step": ("step of divergence", STEPS),
    "diverged_loss": ("loss at divergence", NONE),
    "training_step": ("training step", NONE),
    "training_epoch": ("training epoch", NONE),
    # What a staircase learns
    "coefficient": ("coefficient of the linear map", NONE),
    "input_feature": ("input pattern", NONE),
    "output_feature": ("output pattern", NONE),
    "learned_map": ("linear map that is learned", NONE),
    "main_map": ("main part of the linear map that is learned", NONE),
    "learned_direction": ("what is learned, in spreads of the inputs", NONE),
    "singular_value": ("singular value", NONE),
    "activated": ("whether the neuron becomes active", NONE),
    "returned": ("whether the neuron becomes dormant again", NONE),
    "growth_rate": ("growth rate", NONE),
    "activation_time": ("time at which the neuron activates", TIME),
    # Weights, modes and alignment
    "weights": ("input weight", NONE),
    "coefficients": ("coefficient", NONE),
    "mode_strength": ("strength of the mode", NONE),
    "learned_fraction": ("learned part of the target", NONE),
    "first_norm": ("norm of the first layer", NONE),
    "second_norm": ("norm of the second layer", NONE),
    "alignment": ("alignment of the layers", NONE),
    "gap": ("gap after the first intensities, decades", NONE),
    "direction": ("direction of the input weights", NONE),
    "angle": ("angle of the input weights", "degrees"),
    "size": ("size", NONE),
    "sign": ("sign", NONE),
    "speed": ("learning speed", NONE),
    "time_scale": ("time scale", TIME),
    # Kernels and regimes
    "kernel_distance": ("distance of the kernel from its start", NONE),
    "kernel_change": ("relative change of the kernel", NONE),
    "kernel_exponent": ("exponent of the kernel in the width", NONE),
    "regime": ("regime", NONE),
    # Features
    "intensity": ("intensity of the feature", NONE),
    "quality": ("share of the target in the feature", NONE),
    "cumulative_quality": ("share of the target in the features so far", NONE),
    "utilization": ("share of the output in the feature", NONE),
    "cumulative_utilization": ("share of the output in the features so far", NONE),
    "total_utilization": ("share of the output in all features", NONE),
    "learnability": ("learnability", NONE),
    "constant_overlap": ("overlap of the features with a constant", NONE),
    "effective_dimension": ("effective dimension of the features", NONE),
    "effective_dimension_all_modes": ("effective dimension of all modes", NONE),
    "effective_dimension_quality": ("effective dimension of the quality", NONE),
    "effective_dimension_utilization": ("effective dimension of the utilization", NONE),
    "kappa": ("distance to minimum features κ", NONE),
    "test_kappa": ("distance to minimum features κ on test data", NONE),
    "kappa_cka": ("distance to minimum features κ", NONE),
    "dead_fraction": ("share of dead neurons", NONE),
    "active_fraction": ("share of active neurons", NONE),
    "class_mean_norm": ("norm of the class mean", NONE),
    "between_class_share": ("share of the variance between classes", NONE),
    "nc1": ("spread within classes over that between them (NC1)", NONE),
    "nc2_angle": ("deviation of the angles of the class means (NC2)", NONE),
    "nc2_norm": ("deviation of the norms of the class means (NC2)", NONE),
    "nc3": ("distance of classifiers and class means (NC3)", NONE),
    "nc4": ("disagreement with the nearest class mean (NC4)", NONE),
    # Effects
    "change": ("change of the metric", NONE),
    "low": ("low end of the interval", NONE),
    "high": ("high end of the interval", NONE),
    "holds": ("whether the hypothesis holds", NONE),
    "why_undecided": ("why the hypothesis is undecided", NONE),
    "statement": ("claim", NONE),
}
