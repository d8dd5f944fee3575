from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.flows.exact.deep_diagonal import deep_diagonal_flow
from dynascope.results.clock import time_unit
from dynascope.results.steps_seen import crossing_times
from dynascope.tasks import Task
from dynascope.theory.staircase import diagonal_staircase
from dynascope.theory.staircase.deep_diagonal import deep_activation_phase, deep_diagonal_staircase

X = np.array([[1, -0.75, -0.15, -0.43], [0.85, 0.94, -0.97, -0.96], [-0.99, 0.96, 0.7, -0.15]])
Y = np.array([-0.39, -1.15, 1.98])


def flow_times(x, y, steps, depth, scale):
    duration = 1.3 * float(steps.times[-1])
    curve = deep_diagonal_flow(Task(x, y[:, None]), depth=depth, scale=scale, duration=duration)
    middles = (steps.levels[1:] + steps.levels[:-1]) / 2
    return crossing_times(curve["time"].to_numpy(), curve["loss"].to_numpy(), middles)


def test_golden_jumps_of_depth_three():
    steps = deep_diagonal_staircase(X, Y, depth=3, scale=1e-3)
    unit = 1e3 / 3
    # In units of the limit the jumps are those of every depth, and at this scale 0.2 % off.
    np.testing.assert_allclose(steps.accelerated_times * 3, [0.901523575, 2.267111893, 4.703815338, 12.715306780])
    np.testing.assert_allclose([0.90035, 2.26377, 4.70000, 12.68994], steps.accelerated_times * 3, rtol=2.1e-3)
    np.testing.assert_allclose(steps.times / unit, [0.90035, 2.26377, 4.70000, 12.68994], rtol=7e-4)
    assert steps.degree == 3
    assert not steps.normalised


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_every_depth_visits_the_same_saddles(seed, depth):
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=(8, 5)), draw.normal(size=8)
    deep, shallow = deep_diagonal_staircase(x, y, depth=depth, scale=1e-3), diagonal_staircase(x, y, scale=1e-3)
    np.testing.assert_allclose(deep.levels, shallow.levels, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(deep.features["coefficient"][1], shallow.features["coefficient"][1])
    np.testing.assert_allclose(deep.accelerated_times * (depth * (depth - 2) or 2), shallow.accelerated_times)
    assert deep.learned == shallow.learned


@pytest.mark.parametrize(("depth", "scale"), [(2, 1e-20), (3, 1e-3), (3, 1e-9), (4, 0.01), (4, 1e-5), (6, 0.05)])
def test_times_agree_with_the_flow(depth, scale):
    steps = deep_diagonal_staircase(X, Y, depth=depth, scale=scale)
    seen = flow_times(X, Y, steps, depth, scale)
    # Offsets of a time are of order one, and half of the unit at most is left of the first order.
    tolerance = 3e-2 if depth == 2 else 0.6 * scale ** (depth - 2) * depth * (depth - 2) + 1e-6
    np.testing.assert_allclose(steps.times, seen, rtol=tolerance)


def test_the_first_order_is_nearer_than_the_limit():
    for depth, scale in ((3, 1e-2), (3, 1e-3), (4, 0.03)):
        steps = deep_diagonal_staircase(X, Y, depth=depth, scale=scale)
        seen = flow_times(X, Y, steps, depth, scale)
        limit = steps.accelerated_times * time_unit(scale, degree=depth)
        assert np.max(np.abs(steps.times / seen - 1)) < 0.5 * np.max(np.abs(limit / seen - 1))


@pytest.mark.parametrize(("depth", "scale"), [(3, 0.01), (4, 0.05), (5, 0.1)])
def test_times_of_uncorrelated_inputs_are_exact_up_to_the_square_of_the_scale(depth, scale):
    draw = np.random.default_rng(0)
    x = np.sqrt(8) * np.linalg.qr(draw.normal(size=(8, 4)))[0] * [1.0, 1.5, 0.7, 1.2]
    y = x @ [2.0, -0.6, 0.3, 0.1] + 0.2 * draw.normal(size=8)
    steps = deep_diagonal_staircase(x, y, depth=depth, scale=scale)
    seen = flow_times(x, y, steps, depth, scale)
    # What the coefficients, of which the smallest is 0.1, have at the start is left out.
    np.testing.assert_allclose(steps.times, seen, rtol=3 * (depth - 2) * scale**depth / 0.1)


@pytest.mark.parametrize(("depth", "scale"), [(2, 1e-3), (2, 0.5), (3, 1e-3), (3, 0.5), (4, 1e-4), (7, 0.2)])
def test_activation_phase_is_where_the_norm_is_one(depth, scale):
    phase = deep_activation_phase(scale, depth)
    if depth == 2:
        u, v = scale * np.exp(2 * phase), scale * np.exp(-2 * phase)
    else:
        shift = depth * (depth - 2) * phase
        u = (scale ** (2 - depth) - shift) ** (1 / (2 - depth))
        v = (scale ** (2 - depth) + shift) ** (1 / (2 - depth))
    # u is the difference of two numbers of the size of the unit.
    assert u * u + v * v == pytest.approx(1.0, rel=1e-6)


def test_activation_phase_at_small_scale_is_that_of_the_growing_weight_alone():
    assert deep_activation_phase(1e-5, 3) == pytest.approx((1e5 - 1) / 3, rel=1e-14)
    assert deep_activation_phase(1e-300, 2) == pytest.approx(-np.log(1e-300) / 2, rel=1e-14)


def test_bad_arguments_are_named():
    def attempt(inputs=X, targets=Y, depth=3, scale=1e-3, **options):
        with pytest.raises(InputError) as caught:
            deep_diagonal_staircase(inputs, targets, depth=depth, scale=scale, **options)
        return caught.value.argument

    assert [attempt(depth=bad) for bad in (1, 0, -2)] == ["depth"] * 3
    assert [attempt(scale=bad) for bad in (0.0, 1.0, -1.0, float("nan"), 5e-324)] == ["scale"] * 5
    assert attempt(inputs=np.full((3, 4), np.nan)) == "inputs"
    assert attempt(targets=np.zeros(3)) == "targets"
    assert attempt(feature_names=["one"]) == "feature_names"


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("arguments", "name"), [((0.8, 3), "scale"), ((0.0, 3), "scale"), ((0.1, 1), "depth"), ((0.1, 2.5), "depth")]
)
def test_bad_arguments_of_the_activation_phase_are_named(arguments, name):
    with pytest.raises(InputError) as caught:
        deep_activation_phase(*arguments)
    assert caught.value.argument == name
