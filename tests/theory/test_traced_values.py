"""What compiled theory functions answer for values that they only see while they run: NaN outside their domain."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.theory import modes

MODE = {
    "target": 2.0,
    "input_power": 1.0,
    "initial_output_weight": 0.1,
    "initial_input_weight": 0.2,
    "learning_rate": 0.5,
}
FLOW = {"target": 2.0, "growing": 0.5, "shrinking": 0.1, "rate": 1.0, "log_scale": 0.0}
SETTING = modes.scalar.Setting(1.0, np.array([0.5, -0.3]), np.array([0.1, 0.4]), 1.5, 2.0)


def scalar_trajectory(times, learning_rate, **setting):
    return modes.scalar.trajectory(SETTING._replace(**setting), times, learning_rate=learning_rate)


# The function, arguments in its domain, and what is outside.
CASES = {
    "growth_factor": (
        modes.growth_factor,
        {"times": 1.0, **FLOW},
        {
            "times": (-1.0, np.inf),
            "target": (np.nan, np.inf),
            "growing": (-0.5,),
            "shrinking": (-0.5, np.inf),
            "rate": (0.0, -1.0),
            "log_scale": (np.inf,),
        },
    ),
    "time_to_reach": (
        lambda **arguments: modes.time_to_reach(**arguments, unreachable="infinity"),
        {"strength": 1.0, **FLOW},
        {"strength": (np.nan,), "target": (np.inf,), "growing": (-0.5,), "shrinking": (-0.5,), "rate": (0.0, -1.0)},
    ),
    "mode_strength": (
        modes.mode_strength,
        {"times": 1.0, **MODE},
        {
            "times": (-1.0,),
            "input_power": (0.0, -1.0),
            "learning_rate": (0.0, -1.0),
            "initial_output_weight": (np.inf, np.nan),
            "initial_input_weight": (np.inf,),
        },
    ),
    "linear_mode_strength": (
        modes.linear_mode_strength,
        {"times": 1.0, "target": 2.0, "input_power": 1.0, "learning_rate": 0.5},
        {"times": (-1.0, np.inf), "target": (np.inf,), "input_power": (0.0, -1.0), "learning_rate": (0.0, -1.0)},
    ),
    "emergence_time": (
        modes.emergence_time,
        {**MODE, "fraction": 0.05},
        {"target": (0.0,), "fraction": (0.0, 1.0, 2.0), "input_power": (-1.0,), "initial_output_weight": (np.inf,)},
    ),
    "saturation_time": (
        modes.saturation_time,
        {**MODE, "fraction": 0.05},
        {"target": (0.0,), "fraction": (0.0, 0.5, 0.7), "learning_rate": (-1.0,), "initial_input_weight": (np.inf,)},
    ),
    "stage_threshold": (
        modes.stage_threshold,
        {"target": 1.0, "initial_strength": 0.1, "input_power": 1.0, "next_input_power": 0.5},
        {"initial_strength": (0.0, 1.0, -1.0), "next_input_power": (1.0, 2.0, -0.5), "target": (-1.0, np.inf)},
    ),
    "scalar.trajectory": (
        scalar_trajectory,
        {**SETTING._asdict(), "times": 1.0, "learning_rate": 1.0},
        {
            "times": (-1.0,),
            "learning_rate": (0.0, -1.0),
            "divisor": (0.0,),
            "input_power": (0.0, -1.0),
            "target": (np.inf,),
        },
    ),
}


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def leaves(answer):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(answer)]


@pytest.mark.parametrize("name", CASES)
def test_a_traced_value_outside_the_domain_gives_nan_and_one_inside_has_a_derivative(name):
    function, good, outside = CASES[name]
    compiled = jax.jit(function)
    slope = jax.jit(jax.grad(lambda arguments: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(function(**arguments)))))
    good = {each: np.asarray(value, float) for each, value in good.items()}
    inside = leaves(compiled(**good))
    assert all(np.all(np.isfinite(leaf)) for leaf in [*inside, *leaves(slope(good))])
    for argument, values in outside.items():
        for value in values:
            bad = {**good, argument: np.full_like(good[argument], value)}
            for leaf in leaves(compiled(**bad)):
                assert np.all(np.isnan(leaf)), f"{argument} = {value} gives {leaf}"


@pytest.mark.parametrize("name", CASES)
def test_mapping_over_an_argument_is_one_call_with_all_values(name):
    function, good, _ = CASES[name]
    for argument, value in good.items():
        if np.ndim(value) == 0:
            values = np.asarray(value) * np.array([1.0, 1.1])
            mapped = jax.vmap(lambda each, argument=argument: function(**{**good, argument: each}))(values)
            alone = function(**{**good, argument: values[1]})
            for together, single in zip(leaves(mapped), leaves(alone), strict=True):
                np.testing.assert_allclose(together[1], single, rtol=1e-12)
            break
