from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.noise import collapse_exponent, collapse_rate, gaussian_collapse_exponent


def test_the_golden_maximum_repels_small_rates_and_attracts_large_ones():
    # symmetry_sgd 5.2
    assert collapse_exponent([-3.0, 1.0], learning_rate=0.5) == pytest.approx(0.111571775657, abs=1e-12)
    assert collapse_exponent([-3.0, 1.0], learning_rate=0.8) == pytest.approx(-0.192831240406, abs=1e-12)
    assert collapse_exponent([-3.0, 1.0], learning_rate=2 / 3) == pytest.approx(0, abs=1e-15)


def test_a_batch_that_leads_into_the_set_in_one_step_has_no_finite_exponent():
    assert collapse_exponent([-3.0, 2.0], learning_rate=0.5) == -np.inf
    assert np.isfinite(collapse_exponent([-3.0, 2.0], probabilities=[1.0, 0.0], learning_rate=0.5))


def test_small_steps_follow_the_rate_in_continuous_time():
    h, rate = np.array([-3.0, 1.0, 0.5]), 1e-4
    expected = collapse_rate(h.mean(), h.var(), learning_rate=rate)
    # The next order is η (E h³)/3 and smaller.
    assert collapse_exponent(h, learning_rate=rate) / rate == pytest.approx(
        expected - rate * h.mean() ** 2 / 2, abs=1e-6
    )
    assert collapse_rate(h.mean(), h.var(), learning_rate=rate, batch_size=4) == pytest.approx(
        -h.mean() - rate * h.var() / 8, rel=1e-14
    )


@pytest.mark.parametrize(("h", "s", "rate"), [(-1.0, 5.0, 0.1), (2.0, 30.0, 0.1), (10.0, 0.3, 0.1), (0.0, 0.2, 0.1)])
def test_gaussian_curvatures_agree_with_quadrature(h, s, rate):
    # z = tanh-sinh on both sides of where the factor vanishes, so that the logarithm is resolved.
    t = np.linspace(-4.5, 4.5, 4001)
    x, weight = np.exp(np.pi / 2 * np.sinh(t)), np.pi / 2 * np.cosh(t)
    root = (1 - rate * h) / (rate * s)
    total = sum(np.sum(np.log(rate * s * x) * np.exp(-((root + side * x) ** 2) / 2) * x * weight) for side in (-1, 1))
    expected = total * (t[1] - t[0]) / np.sqrt(2 * np.pi)
    assert gaussian_collapse_exponent(h, s, learning_rate=rate) == pytest.approx(expected, abs=1e-9)


def test_gaussian_curvatures_are_the_limit_of_many_batches():
    z = np.random.default_rng(0).normal(size=200_000)
    draws = np.log(np.abs(1 - 0.1 * (-1 + 12 * z)))
    found = gaussian_collapse_exponent(-1.0, 12.0, learning_rate=0.1)
    # Four standard errors.
    assert found == pytest.approx(draws.mean(), abs=4 * draws.std() / np.sqrt(len(draws)))


def test_both_forms_of_the_gaussian_exponent_meet():
    below, above = (
        gaussian_collapse_exponent(0.0, s, learning_rate=1.0) for s in (0.03 * (1 - 1e-12), 0.03 * (1 + 1e-12))
    )
    assert below == pytest.approx(above, abs=1e-11)  # logarithms of factorials of 600


@given(
    h=st.lists(st.floats(-3, 3), min_size=1, max_size=5),
    rate=st.floats(0.01, 2),
    unit=st.floats(0.1, 10),
)
def test_the_unit_of_curvature_and_repeated_batches_do_not_matter(h, rate, unit):
    found = collapse_exponent(h, learning_rate=rate)
    again = collapse_exponent([unit * each for each in h * 2], learning_rate=rate / unit)
    if np.min(np.abs(1 - rate * np.array(h))) > 1e-6:
        assert again == pytest.approx(found, abs=1e-8)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: collapse_exponent([], learning_rate=0.1), "curvatures"),
        (lambda: collapse_exponent([1.0], learning_rate=0.0), "learning_rate"),
        (lambda: collapse_exponent([1.0, 2.0], probabilities=[0.5, 0.6], learning_rate=0.1), "probabilities"),
        (lambda: collapse_exponent([1.0, 2.0], probabilities=[-0.5, 1.5], learning_rate=0.1), "probabilities"),
        (lambda: gaussian_collapse_exponent(1.0, 0.0, learning_rate=0.1), "deviation"),
        (lambda: gaussian_collapse_exponent([1.0, 2.0], [1.0, 2.0, 3.0], learning_rate=0.1), "deviation"),
        (lambda: collapse_rate(1.0, -1.0, learning_rate=0.1), "curvature_variance"),
        (lambda: collapse_rate(1.0, 1.0, learning_rate=0.1, batch_size=0), "batch_size"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
