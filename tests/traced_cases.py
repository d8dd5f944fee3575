"""What theory functions are asked where JAX traces them: other calls, numbers outside domains, degenerate points."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynascope.theory import LayerRates, line_inputs

__all__ = ["KEPT", "NEEDED", "OTHERS", "OUTSIDE", "POINTS"]

TIMES = np.array([0.3, 1.0])
SAMPLES = np.random.default_rng(0).normal(size=(2, 5, 2))
THREE_INPUTS = np.random.default_rng(2).normal(size=(5, 3))
TWINS = np.eye(2)
WIDE = np.eye(2, 3)
RANDOM = np.random.default_rng(3).normal(size=(2, 5))
LAYERS = (np.array([[0.3, -0.5, 0.2], [0.1, 0.2, 0.4]]), np.array([0.4, -0.2, 0.1]))
LINE = {
    "network": line_inputs.LineNetwork(*LAYERS, 1.2, LayerRates(0.5, 0.7)),
    "data": line_inputs.LineData(np.array([0.6, 0.8]), 2.0, 0.6, 0.1),
    "prefactor": 0.5,
}

# Of an example, what a function needs where it sees no value.
NEEDED: dict[str, dict[str, Any]] = {
    "balanced.gram": {"first": [[0.1]], "second": [[0.2]], "target_map": [[2.0]], "times": [1.0], "steps": 8},
}
# Calls of other shapes, depths and choices than the example has, which need a program of their own. What they leave out
# is that of the example.
OTHERS: dict[str, dict[str, Any]] = {
    "balanced.gram-of two modes": {"first": TWINS, "second": TWINS, "target_map": TWINS, "times": TIMES, "steps": 4},
    "deep_modes.strength_at-of one layer": {"depth": 1},
    "deep_modes.strength_at-of two layers": {"depth": 2},
    "deep_modes.time_to_strength-of one layer": {"depth": 1, "unreachable": "infinity"},
    "deep_modes.time_to_strength-of three layers": {"depth": 3, "unreachable": "infinity"},
    "deep_modes.saddle_escape_time-of three layers": {"depth": 3},
    "features.collapse_trajectory-of unequal classes": {"class_sizes": [4, 9]},
    "features.collapse_end-of unequal classes": {
        "class_sizes": [4, 9],
        "initial_features": 0.2,
        "initial_classifier": 0.1,
    },
    "line_inputs.layer_cosine-of two inputs": {**LINE, "times": 1.0},
    "line_inputs.layer_norms-of two inputs": {**LINE, "times": 1.0},
    "line_inputs.time_scale-of two inputs": LINE,
    "scalar_networks.stage_threshold-of target one": {"target": 1.0},
    "scalar_networks.time_to_reach-of any strength": {"unreachable": "infinity"},
    "transfer.transfer_error-of two features": {"first": WIDE.T, "new_map": np.ones((3, 1)), "times": TIMES},
    "function_space.deep_isotropic_flow-of two modes": {
        "times": TIMES,
        "inputs": SAMPLES[0],
        "targets": SAMPLES[1],
        "coefficients": TWINS,
        "gaps": np.zeros(2),
    },
    "function_space.deep_isotropic_rate-of two values": {"singular_value": np.ones(2)},
    "function_space.isotropic_flow-of three inputs": {
        "times": TIMES,
        "inputs": THREE_INPUTS,
        "targets": SAMPLES[1],
        "coefficients": WIDE.T,
        "imbalance": 0.5,
        "width": 2,
    },
    "function_space.isotropic_preconditioner-of two outputs": {"coefficients": TWINS, "width": 2},
    "function_space.isotropic_preconditioner-of three outputs": {"coefficients": WIDE, "width": 3},
    "function_space.layer_spectra-of two values": {"singular_value": np.ones(2)},
    "function_space.layer_spectra-of two layers": {"gaps": np.zeros(1)},
}

# What is outside the domain of each argument, where all others are as in the call. All that are named are traced.
OUTSIDE_LINE = {
    "network.first": (np.inf, np.nan),
    "network.second": (np.inf,),
    "data.direction": (1.0,),
    "data.power": (0.0, -1.0),
    "data.target": (np.inf,),
    "network.multiplier": (0.0, -1.0),
    "network.rates.first": (0.0, -1.0),
    "network.rates.second": (0.0, -1.0),
    "prefactor": (-0.5,),
}
OUTSIDE_LAYERS = {
    "initial_classifier": (-0.1, np.nan),
    "feature_rate": (0.0, -1.0, np.inf),
    "classifier_rate": (0.0, -1.0),
}
OUTSIDE_SPECTRUM = {
    "intensity": (-1.0, np.inf),
    "samples": (0.0, -1.0, np.inf),
    "ridge": (-1.0, np.inf),
    "multiplicity": (-1.0,),
}
OUTSIDE_STRENGTH = {"times": (-1.0, np.inf), "target": (np.inf, np.nan), "initial_strength": (np.inf,)}
OUTSIDE_TIME = {"strength": (np.nan, np.inf), "target": (np.inf, np.nan), "initial_strength": (-np.inf,)}
OUTSIDE_ESCAPE = {"target": (0.0, -1.0, np.inf), "initial_strength": (0.0, -0.1, 2.0, 3.0)}
OUTSIDE: dict[str, dict[str, tuple[float, ...]]] = {
    "scalar_networks.growth_factor": {
        "times": (-1.0, np.inf),
        "target": (np.nan, np.inf),
        "growing": (-0.5,),
        "shrinking": (-0.5, np.inf),
        "rate": (0.0, -1.0),
        "log_scale": (np.inf,),
    },
    "scalar_networks.time_to_reach-of any strength": {
        "strength": (np.nan,),
        "target": (np.inf,),
        "growing": (-0.5,),
        "shrinking": (-0.5,),
        "rate": (0.0, -1.0),
        "log_scale": (),
    },
    "scalar_networks.mode_strength": {
        "times": (-1.0,),
        "input_power": (0.0, -1.0),
        "learning_rate": (0.0, -1.0),
        "initial_output_weight": (np.inf, np.nan),
        "initial_input_weight": (np.inf,),
    },
    "scalar_networks.linear_mode_strength": {
        "times": (-1.0, np.inf),
        "target": (np.inf,),
        "input_power": (0.0, -1.0),
        "learning_rate": (0.0, -1.0),
    },
    "scalar_networks.emergence_time": {
        "target": (0.0,),
        "fraction": (0.0, 1.0, 2.0),
        "input_power": (-1.0,),
        "initial_output_weight": (np.inf,),
        "learning_rate": (),
    },
    "scalar_networks.saturation_time": {
        "target": (0.0,),
        "fraction": (0.0, 0.5, 0.7),
        "learning_rate": (-1.0,),
        "initial_input_weight": (np.inf,),
    },
    "scalar_networks.stage_threshold-of target one": {
        "initial_strength": (0.0, 1.0, -1.0),
        "next_input_power": (1.0, 2.0, -0.5),
        "target": (-1.0, np.inf),
    },
    "scalar_networks.scalar.scalar_trajectory": {
        "times": (-1.0,),
        "learning_rate": (0.0, -1.0),
        "setting.divisor": (0.0,),
        "setting.input_power": (0.0, -1.0),
        "setting.target": (np.inf,),
    },
    "line_inputs.line_trajectory": {**OUTSIDE_LINE, "times": (-1.0, np.inf), "data.unexplained": (-1.0, np.nan)},
    "line_inputs.layer_cosine-of two inputs": {**OUTSIDE_LINE, "times": (-1.0, np.inf)},
    "line_inputs.layer_norms-of two inputs": {**OUTSIDE_LINE, "times": (-1.0, np.inf)},
    "line_inputs.time_scale-of two inputs": OUTSIDE_LINE,
    "line_inputs.tangent_kernel": {
        "network.first": (np.inf,),
        "network.multiplier": (0.0, -1.0),
        "network.rates.first": (-1.0,),
        "network.rates.second": (0.0,),
    },
    "deep_modes.strength_at-of one layer": OUTSIDE_STRENGTH,
    "deep_modes.strength_at-of two layers": OUTSIDE_STRENGTH,
    "deep_modes.strength_at": OUTSIDE_STRENGTH,
    "deep_modes.time_to_strength-of one layer": OUTSIDE_TIME,
    "deep_modes.time_to_strength": OUTSIDE_TIME,
    "deep_modes.time_to_strength-of three layers": OUTSIDE_TIME,
    "deep_modes.saddle_escape_time": OUTSIDE_ESCAPE,
    "deep_modes.saddle_escape_time-of three layers": OUTSIDE_ESCAPE,
    "features.effective_ridge": OUTSIDE_SPECTRUM,
    "features.learnability": OUTSIDE_SPECTRUM,
    "features.kernel_regression_error": {
        "intensity": (-1.0, np.inf),
        "samples": (0.0, -1.0),
        "ridge": (-1.0,),
        "multiplicity": (),
        "coefficients": (np.inf, np.nan),
        "noise_variance": (-1.0, np.inf),
        "unreachable_power": (-1.0,),
    },
    "features.mode_flow": {
        "times": (-1.0, np.inf),
        "intensity": (-1.0,),
        "target_coefficients": (np.inf,),
        "initial_coefficients": (np.nan,),
        "learning_rate": (0.0, -1.0),
    },
    "features.collapse_trajectory-of unequal classes": {
        "times": (-1.0,),
        "initial_features": (0.0, -0.1, np.inf),
        **OUTSIDE_LAYERS,
    },
    "features.collapse_end-of unequal classes": {"initial_features": (-0.1, np.inf), **OUTSIDE_LAYERS},
    "scaling_laws.skill_integral": {
        "exponent": (0.0, 1.0, -0.5),
        "contrast": (0.0, -1.0, np.inf),
        "lower": (-1.0, np.inf),
    },
}
# The parts of an answer that do not depend on an argument: modes are learned alike whatever the noise is; a start is as
# balanced, and features leave as much, whatever the times.
KEPT = {
    ("balanced.gram", "times"): {3, 4},
    ("features.kernel_regression_error", "coefficients"): {0, 1, 2},
    ("features.kernel_regression_error", "noise_variance"): {0, 1, 2, 6},
    ("features.kernel_regression_error", "unreachable_power"): {0, 1, 2, 6},
    ("line_inputs.line_trajectory", "data.unexplained"): {0, 1, 2, 3},
    ("transfer.transfer_error", "times"): {1},
}

# Call, where it is moved, and what it is given besides: at equal singular values, at nothing, at a balanced start. A
# number stands for an array of it.
POINTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("balanced.gram-of two modes", {"target_map": 2 * TWINS}, {}),
    ("balanced.gram-of two modes", {"target_map": 0 * TWINS}, {}),
    ("deep_modes.strength_at", {"times": [0.3, 1.0, 2.0], "target": 1.0, "initial_strength": 0.2}, {}),
    ("deep_modes.strength_at-of two layers", {"initial_strength": 0.3}, {"times": [0.3, 1.0, 2.0], "target": 0.0}),
    ("deep_modes.time_to_strength", {"strength": 0.5, "target": 1.0, "initial_strength": 0.2}, {}),
    ("features.collapse_trajectory", {"initial_features": 0.2, "initial_classifier": 0.2}, {"times": 0.3}),
    ("features.collapse_trajectory", {"initial_features": 0.2, "initial_classifier": 0.2}, {"times": 1.0}),
    ("features.effective_ridge", {"intensity": 1.0}, {"samples": 25.0}),
    (
        "features.kernel_regression_error",
        {"intensity": 1.0, "coefficients": 0.0},
        {"samples": 25.0, "noise_variance": 0.0},
    ),
    ("line_inputs.line_trajectory", {"network.first": 0.0, "network.second": 1.0}, {"times": TIMES}),
    ("line_inputs.line_trajectory", {"network.first": WIDE, "network.second": 0.0}, {"times": TIMES}),
    *(
        (
            "scalar_networks.mode_strength",
            {"target": target, "input_power": 1.0, "initial_output_weight": output, "initial_input_weight": 0.3},
            {"times": time},
        )
        for target, output in ((1.0, 0.3), (0.0, 0.0))
        for time in TIMES
    ),
    *(
        (
            "scalar_networks.scalar.scalar_trajectory",
            {"setting.target": 1.0, "setting.output_weights": 0.0, "setting.input_weights": 1.0},
            {"times": time},
        )
        for time in TIMES
    ),
    (
        "neuron.function_space_flow",
        {"inputs": RANDOM[:, :4], "targets": RANDOM[:, 4], "coefficients": 0.0},
        {"times": TIMES, "imbalance": 0.5},
    ),
    (
        "neuron.interpolator",
        {"targets": 1.0, "initial_weights": [1.0, 1.0, 0.0, 0.0]},
        {"inputs": np.eye(2, 4), "initial_output": 0.5},
    ),
    ("neuron.kernel_change", {"output": 2.0, "weights": [1.0, -1.0]}, {"initial_output": 1.0, "initial_weights": 1.0}),
    (
        "neuron.neuron_trajectory",
        {"initial_output": 1.0, "initial_weights": [1.0, 0.0, 0.0], "target": [0.0, 2.0, 0.0]},
        {"times": TIMES},
    ),
    # It says that it has no derivative in a target of zero.
    (
        "neuron.neuron_trajectory",
        {"initial_output": 1.0, "initial_weights": [1.0, 0.0, 0.0]},
        {"times": TIMES, "target": 0.0},
    ),
    ("scaling_laws.skill_integral", {"exponent": 0.4, "contrast": 99.0, "lower": 0.1}, {}),
    ("transfer.reversal_time", {"strength": 1.5, "balance": 0.2}, {}),
    *(
        ("transfer.reversal_trajectory", {"strength": strength, "balance": 0.3}, {"times": time})
        for strength in (0.5, 2.0)
        for time in TIMES
    ),
    ("transfer.transfer_error", {"first": np.diag([1.0, 1.0, 0.5]), "new_map": 1.0}, {"times": TIMES}),
    ("transfer.transfer_error-of two features", {"new_map": 1.0}, {}),
    ("transfer.transfer_speed", {"strength": [0.0, 1.0], "balance": 2.0}, {}),
    ("function_space.deep_isotropic_flow-of two modes", {"coefficients": 0.5 * TWINS, "gaps": [0.5, -0.2]}, {}),
    ("function_space.deep_isotropic_flow-of two modes", {"coefficients": 0.5 * TWINS, "gaps": 0.0}, {}),
    ("function_space.deep_isotropic_rate-of two values", {"singular_value": 0.8, "gaps": [0.5, -0.2]}, {}),
    ("function_space.isotropic_flow-of three inputs", {"coefficients": WIDE.T, "imbalance": 0.5}, {}),
    ("function_space.isotropic_flow-of three inputs", {"coefficients": 0 * WIDE.T, "imbalance": 0.5}, {}),
    ("function_space.isotropic_flow-of three inputs", {"coefficients": 1.0, "imbalance": 0.5}, {}),
    ("function_space.isotropic_preconditioner-of two outputs", {"coefficients": TWINS}, {"imbalance": 0.0}),
    ("function_space.isotropic_preconditioner-of three outputs", {"coefficients": WIDE, "imbalance": 0.5}, {}),
    ("function_space.layer_spectra-of two values", {"singular_value": 0.8, "gaps": [0.5, -0.2]}, {}),
    ("function_space.layer_spectra-of two layers", {"singular_value": 0.8, "gaps": 0.4}, {}),
]
