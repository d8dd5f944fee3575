"""What compiled theory functions answer for values that they only see while they run: NaN outside their domain."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.theory import deep_modes, features, line, modes, scaling_laws

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


LINE = {
    "first": np.array([[0.3, -0.5, 0.2], [0.1, 0.2, 0.4]]),
    "second": np.array([0.4, -0.2, 0.1]),
    "direction": np.array([0.6, 0.8]),
    "power": 2.0,
    "target": 0.6,
    "multiplier": 1.2,
    "first_rate": 0.5,
    "second_rate": 0.7,
    "prefactor": 0.5,
}
OUTSIDE_LINE = {
    "first": (np.inf, np.nan),
    "second": (np.inf,),
    "direction": (1.0,),
    "power": (0.0, -1.0),
    "target": (np.inf,),
    "multiplier": (0.0, -1.0),
    "first_rate": (0.0, -1.0),
    "second_rate": (0.0, -1.0),
    "prefactor": (-0.5,),
}


SPECTRUM = {"intensity": np.array([1.0, 0.1, 0.01]), "samples": 2.0, "ridge": 0.1, "multiplicity": 1.0}
LAYERS = {"initial_features": 0.2, "initial_classifier": 0.1, "feature_rate": 0.5, "classifier_rate": 0.7}
OUTSIDE_LAYERS = {
    "initial_classifier": (-0.1, np.nan),
    "feature_rate": (0.0, -1.0, np.inf),
    "classifier_rate": (0.0, -1.0),
}


def on_a_line(first, second, direction, power, target, unexplained, times, **others):
    """All that the theory says of a start, which is most of what each part needs."""
    data = line.LineData(direction, power, target, unexplained)
    late = {"first": first, "second": second, "data": data, **others}
    return {
        "trajectory": line.trajectory(times=times, **late),
        "alignment": line.alignment(times=times, **late),
        "layer_norms": line.layer_norms(times=times, **late),
        "time_scale": line.time_scale(**late),
    }


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
    "line": (
        on_a_line,
        {**LINE, "times": 1.0, "unexplained": 0.1},
        {**OUTSIDE_LINE, "times": (-1.0, np.inf), "unexplained": (-1.0, np.nan)},
    ),
    **{
        f"deep_modes.strength_at of {depth} layers": (
            functools.partial(deep_modes.strength_at, depth=depth),
            {"times": 1.0, "target": 2.0, "initial_strength": 0.1},
            {"times": (-1.0, np.inf), "target": (np.inf, np.nan), "initial_strength": (np.inf,)},
        )
        for depth in (1, 2, 3)
    },
    **{
        f"deep_modes.time_to_strength of {depth} layers": (
            functools.partial(deep_modes.time_to_strength, depth=depth, unreachable="infinity"),
            {"strength": 1.0, "target": 2.0, "initial_strength": 0.1},
            {"strength": (np.nan, np.inf), "target": (np.inf, np.nan), "initial_strength": (-np.inf,)},
        )
        for depth in (1, 2, 3)
    },
    **{
        f"deep_modes.escape_time of {depth} layers": (
            functools.partial(deep_modes.escape_time, depth=depth),
            {"target": 2.0, "initial_strength": 0.1},
            {"target": (0.0, -1.0, np.inf), "initial_strength": (0.0, -0.1, 2.0, 3.0)},
        )
        for depth in (2, 3)
    },
    **{
        f"features.{function.__name__}": (
            function,
            SPECTRUM,
            {
                "intensity": (-1.0, np.inf),
                "samples": (0.0, -1.0, np.inf),
                "ridge": (-1.0, np.inf),
                "multiplicity": (-1.0,),
            },
        )
        for function in (features.effective_ridge, features.learnability)
    },
    "features.kernel_regression_error": (
        lambda **arguments: features.kernel_regression_error(**arguments)[3:6],
        {**SPECTRUM, "coefficients": np.array([1.0, 0.5, 0.2]), "noise_variance": 0.1, "unreachable_power": 0.1},
        {
            "intensity": (-1.0, np.inf),
            "samples": (0.0, -1.0),
            "ridge": (-1.0,),
            "coefficients": (np.inf, np.nan),
            "noise_variance": (-1.0, np.inf),
            "unreachable_power": (-1.0,),
        },
    ),
    "features.mode_flow": (
        lambda **arguments: features.mode_flow(**arguments)[::2],
        {
            "times": 1.0,
            "intensity": np.array([1.0, 0.1]),
            "target_coefficients": np.array([1.0, 0.5]),
            "initial_coefficients": 0.1,
            "learning_rate": 0.5,
        },
        {
            "times": (-1.0, np.inf),
            "intensity": (-1.0,),
            "target_coefficients": (np.inf,),
            "initial_coefficients": (np.nan,),
            "learning_rate": (0.0, -1.0),
        },
    ),
    "features.collapse_trajectory": (
        lambda **arguments: features.collapse_trajectory(class_sizes=[4, 9], **arguments)[:4],
        {"times": 1.0, **LAYERS},
        {"times": (-1.0,), "initial_features": (0.0, -0.1, np.inf), **OUTSIDE_LAYERS},
    ),
    "features.collapse_end": (
        lambda **arguments: features.collapse_end([4, 9], **arguments)[:4],
        LAYERS,
        {"initial_features": (-0.1, np.inf), **OUTSIDE_LAYERS},
    ),
    "scaling_laws.skill_integral": (
        scaling_laws.skill_integral,
        {"exponent": 0.4, "contrast": 99.0, "lower": 0.1},
        {"exponent": (0.0, 1.0, -0.5), "contrast": (0.0, -1.0, np.inf), "lower": (-1.0, np.inf)},
    ),
    "line.tangent_kernel": (
        line.tangent_kernel,
        {
            "first": LINE["first"],
            "second": LINE["second"],
            "inputs": np.eye(2),
            "multiplier": 1.2,
            "first_rate": 0.5,
            "second_rate": 0.7,
        },
        {"first": (np.inf,), "multiplier": (0.0, -1.0), "first_rate": (-1.0,), "second_rate": (0.0,)},
    ),
}


def spoiled(name, argument, value, found):
    """The parts of an answer that are lost where an argument is outside."""
    if name != "line":
        return found
    run = found["trajectory"]
    if argument == "unexplained":
        return [run.loss]
    late = [found["alignment"], found["layer_norms"], *([] if argument == "times" else [found["time_scale"]])]
    # The weights are arrays, and one of them goes on where only the other has a number that is none.
    whole = (argument, value) in {("times", -1.0), ("power", 0.0), ("second_rate", -1.0)}
    return [run if whole else run[2:], *late]


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def leaves(answer):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(answer)]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_traced_value_outside_the_domain_gives_nan_and_one_inside_what_it_gives_alone_and_a_derivative(name):
    function, good, outside = CASES[name]
    good = {each: np.asarray(value, float) for each, value in good.items()}
    argument, value = next((argument, value) for argument, value in good.items() if np.ndim(value) == 0)
    inside = [good, {**good, argument: 1.1 * value}]
    wrong = [(argument, value) for argument, values in outside.items() for value in values]
    bad = [{**good, argument: np.full_like(good[argument], value)} for argument, value in wrong]

    def total(arguments):
        found = function(**arguments)
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(found)), found

    # One program has the answers to all and the slopes of their sums.
    batch = jax.tree.map(lambda *each: np.stack(each), *inside, *bad)
    slopes, answers = jax.device_get(jit(jax.vmap(jax.grad(total, has_aux=True)))(batch))
    for row, arguments in enumerate(inside):
        slope, together = (leaves(jax.tree.map(lambda leaf, row=row: leaf[row], each)) for each in (slopes, answers))
        assert all(np.all(np.isfinite(leaf)) for leaf in [*together, *slope])
        for one, other in zip(leaves(function(**arguments)), together, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-12)
    for row, (argument, value) in enumerate(wrong, len(inside)):
        found = jax.tree.map(lambda leaf, row=row: leaf[row], answers)
        for leaf in leaves(spoiled(name, argument, value, found)):
            assert np.all(np.isnan(leaf)), f"{argument} = {value} gives {leaf}"
