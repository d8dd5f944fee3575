from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.staircase import diagonal_staircase
from dynascope.theory.staircase.activation_times import activation_staircase
from dynascope.theory.staircase.deep_diagonal import deep_diagonal_staircase

X = np.array([[1, -0.75, -0.15, -0.43], [0.85, 0.94, -0.97, -0.96], [-0.99, 0.96, 0.7, -0.15]])
Y = np.array([-0.39, -1.15, 1.98])


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (1e-4, [0.935446779570, 2.352420478104, 4.880814026465, 13.193767872768]),
        (1e-8, [0.918485177206, 2.309766185402, 4.792314682047, 12.954537326221]),
    ],
)
def test_golden_times_at_finite_scale(scale, expected):
    times = activation_staircase(X, Y, scale=scale).times
    # All the digits of the table.
    np.testing.assert_allclose(times / -np.log(scale), expected, rtol=0, atol=6e-12)


def alternating(scale, activations):
    """The first activations by integration of the weights of dormant neurons under frozen residuals."""
    weights, beta, clock, times = np.array([[scale, 0.0]] * 4), np.zeros(4), 0.0, []
    for _ in range(activations):
        pull = X.T @ (Y - X @ beta) / 3
        dormant = np.flatnonzero(beta == 0)
        events = [lambda _, w, k=k: w[2 * k] ** 2 + w[2 * k + 1] ** 2 - 1 for k in range(len(dormant))]
        for event in events:
            event.terminal, event.direction = True, 1
        run = solve_ivp(
            lambda _, w, p=pull[dormant]: (p[:, None] * w.reshape(-1, 2)[:, ::-1]).ravel(),
            (0, 1e3),
            weights[dormant].ravel(),
            "DOP853",
            rtol=1e-12,
            atol=1e-14 * scale,
            events=events,
        )
        weights[dormant] = run.y[:, -1].reshape(-1, 2)
        clock += run.t[-1]
        times.append(clock)
        active = np.flatnonzero(np.sum(weights**2, axis=1) > 1 - 1e-6)
        beta[active] = np.linalg.lstsq(X[:, active], Y, rcond=None)[0]
    return times


@pytest.mark.parametrize("scale", [0.1, 1e-3, 1e-6])
def test_times_agree_with_integration_of_the_dormant_weights(scale):
    times = activation_staircase(X, Y, scale=scale).times
    # Until the third activation no input leaves, so that the active set is a plain least squares.
    np.testing.assert_allclose(alternating(scale, 2), times[:2], rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-4, 1e-50, 1e-300])
def test_times_over_those_of_the_limit_are_one_number(scale):
    steps, size = activation_staircase(X, Y, scale=scale), -np.log(scale)
    ratios = steps.times / (size * steps.accelerated_times)
    np.testing.assert_allclose(ratios, 1 + np.log(2) / (2 * size), rtol=1e-9)
    assert np.all(np.isfinite(steps.times))


def test_everything_but_the_times_is_that_of_the_path():
    for steps, path in (
        (activation_staircase(X, Y, scale=1e-6), diagonal_staircase(X, Y, scale=1e-6)),
        (activation_staircase(X, Y, scale=1e-3, depth=4), deep_diagonal_staircase(X, Y, scale=1e-3, depth=4)),
    ):
        np.testing.assert_array_equal(steps.levels, path.levels)
        np.testing.assert_array_equal(steps.accelerated_times, path.accelerated_times)
        assert (steps.learned, steps.slow, steps.degree) == (path.learned, path.slow, path.degree)
        assert steps.theory != path.theory


def test_at_depth_three_the_growing_weight_decides():
    # 3 G = 1/α − 1/u, with u = 1 up to the small weight.
    steps = activation_staircase(X, Y, scale=1e-4, depth=3)
    np.testing.assert_allclose(steps.times, steps.accelerated_times * (1e4 - 1), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        *(({"scale": bad}, "scale") for bad in (0.0, 1.0, -1.0, float("nan"))),
        *(({"depth": bad}, "depth") for bad in (1, 0, -1)),
        ({"scale": 0.9, "depth": 3}, "scale"),
        ({"feature_names": ["one"]}, "feature_names"),
    ],
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(InputError) as caught:
        activation_staircase(X, Y, **{"scale": 1e-3, **arguments})
    assert caught.value.argument == name
