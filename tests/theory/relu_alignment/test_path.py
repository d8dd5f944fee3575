from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.relu_alignment import alignment_path, angle_within_arc


def trained(x, r, starts, sign, duration, steps=4000):
    """Unit directions and log-sizes of balanced neurons a·relu(w·x), by Heun steps on w' = a D(w), a' = w·D(w)."""
    w = starts / np.linalg.norm(starts, axis=1, keepdims=True)
    a = np.full(len(w), float(sign))

    def velocity(w, a):
        drift = ((w @ x.T > 0) * r) @ x / len(x)
        return a[:, None] * drift, np.sum(w * drift, axis=1)

    step = duration / steps
    for _ in range(steps):
        w_speed, a_speed = velocity(w, a)
        w_later, a_later = velocity(w + step * w_speed, a + step * a_speed)
        w, a = w + step / 2 * (w_speed + w_later), a + step / 2 * (a_speed + a_later)
    return w / np.linalg.norm(w, axis=1, keepdims=True), np.log(np.abs(a))


def drawn(seed: int, dimension: int | None = None):
    draw = np.random.default_rng(seed)
    dimension = int(draw.integers(2, 7)) if dimension is None else dimension
    samples = int(draw.integers(2, 13))
    return draw.normal(size=(samples, dimension)), draw.normal(size=samples), draw.normal(size=dimension)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("dimension", "samples"), [(2, 6), (3, 8), (4, 12), (6, 5), (3, 30)])
def test_the_path_is_that_of_training(dimension, samples, sign):
    draw = np.random.default_rng(1)
    x, r = draw.normal(size=(samples, dimension)), draw.normal(size=samples)
    starts = draw.normal(size=(25, dimension))
    for duration in (1.0, 4.0):
        directions, sizes = trained(x, r, starts, sign, duration)
        for start, direction, size in zip(starts, directions, sizes, strict=True):
            predicted, growth = alignment_path(x, r, start, sign=sign).at(np.array([duration]))
            # Where a datum is switched the steps of 1e-3 are of first order; seen errors are up to 6e-4.
            np.testing.assert_allclose(predicted[0], direction, atol=3e-3)
            np.testing.assert_allclose(growth[0], size, atol=3e-3)


def test_data_on_one_line_share_their_boundary():
    x = np.array([[1.0, 0.5], [-2.0, -1.0], [0.3, 0.15], [0.0, 1.0], [0.0, -1.0]])
    r = np.array([1.0, 0.7, -0.4, -0.8, 0.5])
    starts = np.random.default_rng(0).normal(size=(20, 2))
    for sign in (1, -1):
        directions, sizes = trained(x, r, starts, sign, 3.0)
        for start, direction, size in zip(starts, directions, sizes, strict=True):
            predicted, growth = alignment_path(x, r, start, sign=sign).at(np.array([3.0]))
            # As above.
            np.testing.assert_allclose(predicted[0], direction, atol=3e-3)
            np.testing.assert_allclose(growth[0], size, atol=3e-3)


def test_where_no_datum_is_switched_the_angle_follows_its_closed_form():
    x, r = np.array([[1.0, 0.1], [0.9, -0.1]]), np.array([1.0, 0.8])
    times = np.linspace(0, 8, 9)
    path = alignment_path(x, r, np.array([np.cos(0.7), np.sin(0.7)]))
    directions, _ = path.at(times)
    assert len(path.times) == 1
    angles = angle_within_arc(0.7, r @ x / 2, times)
    # Both are closed forms, evaluated in double precision.
    np.testing.assert_allclose(np.arctan2(directions[:, 1], directions[:, 0]), angles, atol=1e-12)


def test_a_neuron_that_no_datum_activates_stays():
    path = alignment_path(np.eye(2), np.array([1.0, -1.0]), np.array([-3.0, -4.0]))
    directions, growth = path.at(np.array([0.0, 5.0]))
    assert path.kind == "dead"
    assert path.rate == 0
    np.testing.assert_allclose(directions, [[-0.6, -0.8]] * 2, atol=1e-15)
    assert not growth.any()


def test_a_neuron_against_its_drift_shrinks_without_turning():
    path = alignment_path(np.array([[1.0]]), np.array([-1.0]), np.array([2.0]))
    directions, growth = path.at(np.array([0.0, 1.0, 500.0]))
    np.testing.assert_allclose(directions, 1.0)
    np.testing.assert_allclose(growth, [0.0, -1.0, -500.0])
    assert path.rate == -1.0


@given(st.integers(0, 10**6), st.sampled_from([1, -1]))
def test_the_objective_never_decreases_along_a_path(seed, sign):
    x, r, start = drawn(seed)
    path = alignment_path(x, r, start, sign=sign)
    directions, _ = path.at(np.linspace(0, path.times[-1] + 20, 200))
    objective = sign * np.maximum(directions @ x.T, 0) @ r / len(x)
    # Up to the rounding of sums of order one.
    assert np.diff(objective).min() > -1e-9


@given(st.integers(0, 10**6), st.sampled_from([1, -1]))
def test_growth_is_the_integral_of_the_objective(seed, sign):
    x, r, start = drawn(seed)
    times = np.linspace(0, 5, 5001)
    directions, growth = alignment_path(x, r, start, sign=sign).at(times)
    objective = sign * np.maximum(directions @ x.T, 0) @ r / len(x)
    integral = np.append(0, np.cumsum((objective[1:] + objective[:-1]) / 2 * np.diff(times)))
    # The trapezoidal rule errs by its step times the jumps of the slope, 1e-3 times a drift of order ten.
    np.testing.assert_allclose(growth, integral, atol=1e-3 * (1 + np.abs(r) @ np.sum(x**2, axis=1)))


@given(st.integers(0, 10**6), st.sampled_from([1, -1]))
def test_a_path_turns_with_the_data(seed, sign):
    x, r, start = drawn(seed)
    turn, _ = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(x.shape[1],) * 2))
    here, there = (alignment_path(*data, sign=sign) for data in ((x, r, start), (x @ turn, r, start @ turn)))
    assert here.kind == there.kind
    # Rounding grows where a path passes a point that it could leave either way.
    np.testing.assert_allclose(here.end @ turn, there.end, atol=1e-7)
    np.testing.assert_allclose(here.rate, there.rate, atol=1e-7)


@given(st.integers(0, 10**6), st.floats(0.1, 10), st.floats(0.1, 10))
def test_the_size_of_residuals_only_sets_the_pace(seed, factor, length):
    x, r, start = drawn(seed)
    times = np.linspace(0, 3, 20)
    usual = alignment_path(x, r, start).at(times)
    scaled = alignment_path(x, factor * r, length * start).at(times / factor)
    for one, other in zip(usual, scaled, strict=True):
        # Up to rounding.
        np.testing.assert_allclose(one, other, atol=1e-7)


@given(st.integers(0, 10**6))
def test_the_sign_of_an_output_weight_acts_as_that_of_the_residuals(seed):
    x, r, start = drawn(seed)
    np.testing.assert_array_equal(alignment_path(x, r, start, sign=-1).end, alignment_path(x, -r, start).end)


@given(st.integers(0, 10**6), st.sampled_from([1, -1]))
def test_a_path_that_starts_at_the_end_stays_there(seed, sign):
    x, r, start = drawn(seed)
    path = alignment_path(x, r, start, sign=sign)
    if path.kind == "interior":
        again = alignment_path(x, r, path.end, sign=sign)
        # Up to rounding.
        np.testing.assert_allclose(again.end, path.end, atol=1e-7)


X, R, START = np.eye(2), np.array([1.0, -1.0]), np.array([1.0, 1.0])


@pytest.mark.parametrize("exponents", [(-1000, 0, 0), (1000, 0, 0), (0, -1000, 0), (0, 1000, 0), (0, 0, -1000)])
def test_inputs_residuals_and_starts_of_any_size_have_the_same_path(exponents):
    x, r, start = *drawn(7, 3)[:2], np.array([1.0, 1.0, -0.5])
    one = alignment_path(x, r, start)
    other = alignment_path(*(np.ldexp(part, each) for part, each in zip((x, r, start), exponents, strict=True)))
    pace = exponents[0] + exponents[1]
    assert other.kind == one.kind != "dead"
    np.testing.assert_allclose(other.corners, one.corners, rtol=1e-9)
    np.testing.assert_allclose(np.ldexp(other.times, pace), one.times, rtol=1e-9)
    np.testing.assert_allclose(np.ldexp(other.rate, -pace), one.rate, rtol=1e-9)
    times = np.array([0.0, 0.3, 3.0])
    for found, expected in zip(other.at(np.ldexp(times, -pace)), one.at(times), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("inputs", lambda: alignment_path(X * np.nan, R, START)),
        ("residuals", lambda: alignment_path(X, R[:1], START)),
        ("residuals", lambda: alignment_path(X, np.ones((2, 2)), START)),
        ("residuals", lambda: alignment_path(X, 0 * R, START)),
        ("residuals", lambda: alignment_path(0 * X, R, START)),
        ("start", lambda: alignment_path(X, R, 0 * START)),
        ("start", lambda: alignment_path(X, R, START[:1])),
        ("start", lambda: alignment_path(X, R, START * np.inf)),
        ("sign", lambda: alignment_path(X, R, START, sign=0)),
        ("times", lambda: alignment_path(X, R, START).at(np.array([-1.0]))),
        ("times", lambda: alignment_path(X, R, START).at(np.array([np.nan]))),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_what_has_no_path_is_refused_by_name(argument, call):
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.argument == argument
