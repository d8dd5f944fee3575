from __future__ import annotations

import itertools
import warnings

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.probes.kernel import (
    NeuralTangentKernel,
    centred_alignment,
    kernel_distance,
    kernel_velocity,
    relative_change,
    target_alignment,
)

BIASED = pytest.mark.filterwarnings("ignore:the alignment of these")


def kernels(seed=0, n=6):
    draw = np.random.default_rng(seed)
    factors = draw.normal(size=(2, n, n))
    return factors @ np.swapaxes(factors, 1, 2)


def centring(n):
    return np.eye(n) - 1 / n


@BIASED
def test_the_measures_are_their_definitions():
    k, other = kernels()
    y = np.random.default_rng(3).normal(size=(6, 2))

    def cosine(a, b):
        return np.sum(a * b) / np.linalg.norm(a) / np.linalg.norm(b)

    h = centring(6)
    np.testing.assert_allclose(kernel_distance(k, other), 1 - cosine(k, other), rtol=1e-13)
    np.testing.assert_allclose(kernel_velocity(k, other, duration=0.1), (1 - cosine(k, other)) / 0.1, rtol=1e-13)
    np.testing.assert_allclose(centred_alignment(k, other), cosine(h @ k @ h, h @ other @ h), rtol=1e-13)
    np.testing.assert_allclose(kernel_distance(k, other, centred=True), 1 - centred_alignment(k, other), rtol=1e-13)
    np.testing.assert_allclose(target_alignment(k, y), cosine(k, y @ y.T), rtol=1e-13)
    np.testing.assert_allclose(target_alignment(k, y, centred=True), cosine(h @ k @ h, h @ y @ y.T @ h), rtol=1e-13)
    np.testing.assert_allclose(relative_change(k, other), np.linalg.norm(other - k) / np.linalg.norm(k), rtol=1e-13)


def test_small_distances_keep_their_digits():
    k, change = kernels()
    # Of the second order: half the squared share of the change that is orthogonal to the kernel.
    change = change - k * np.sum(change * k) / np.sum(k * k)
    step = 1e-10
    expected = step**2 / 2 * np.sum(change**2) / np.sum(k**2)
    # The entries of 1e-16 relative rounding differ by about 1e-10, which leaves six digits of the difference.
    np.testing.assert_allclose(kernel_distance(k, k + step * change), expected, rtol=1e-4)


def test_single_precision_is_summed_in_double_precision():
    k = kernels()[0].astype(np.float32)
    other = k + np.float32(1e-3) * np.eye(6, dtype=np.float32)
    found = kernel_distance(k, other)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, kernel_distance(k.astype(np.float64), other.astype(np.float64)), rtol=1e-13)


@BIASED
@given(
    seed=st.integers(0, 1000),
    factor=st.sampled_from([1e-200, 1e-3, 7.0, 1e200]),
    constant=st.floats(-50, 50),
)
@settings(max_examples=12, deadline=None)
def test_the_measures_ignore_what_they_should(seed, factor, constant):
    k, other = kernels(seed)
    distance = kernel_distance(k, other)
    assert 0 <= distance <= 1
    np.testing.assert_allclose(kernel_distance(factor * k, other), distance, rtol=1e-11)
    np.testing.assert_allclose(kernel_distance(other, k), distance, rtol=1e-11)
    # The constant is up to some fifty times the entries, whose rounding centring keeps.
    np.testing.assert_allclose(centred_alignment(k + constant, other), centred_alignment(k, other), rtol=1e-10)
    np.testing.assert_allclose(relative_change(k, 3 * k), 2.0, rtol=1e-12)
    debiased = centred_alignment(k, other, debiased=True)
    # Of unbiased estimates the diagonal is no part.
    shifted = factor * (k + constant + 3 * np.eye(6))
    np.testing.assert_allclose(centred_alignment(shifted, other, debiased=True), debiased, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(centred_alignment(k, 2 * k, debiased=True), 1.0, rtol=1e-12)


def gaussian_kernels(seed, n, *widths):
    draw = np.random.default_rng(seed)
    return [features @ features.T for features in (draw.normal(size=(n, width)) for width in widths)]


def unbiased_criterion(k, other):
    """Song et al. (2012), eq. (5)."""
    n = len(k)
    k, other = (each - np.diag(np.diag(each)) for each in (k, other))
    both, ones = k @ other, np.ones(n)
    constant = (ones @ k @ ones) * (ones @ other @ ones) / ((n - 1) * (n - 2))
    return (np.trace(both) + constant - 2 / (n - 2) * ones @ both @ ones) / (n * (n - 3))


@pytest.mark.parametrize("n", [4, 7, 40])
def test_the_debiased_alignment_is_made_of_unbiased_estimates(n):
    k, other = gaussian_kernels(0, n, 5, 8)
    between, one, two = (unbiased_criterion(*pair) for pair in ((k, other), (k, k), (other, other)))
    np.testing.assert_allclose(centred_alignment(k, other, debiased=True), between / np.sqrt(one * two), rtol=1e-10)


@BIASED
def test_in_random_order_the_bias_is_that_of_the_docstring():
    k, other = gaussian_kernels(0, 5, 3, 4)
    orders = [list(order) for order in itertools.permutations(range(5))]
    mean = np.mean([centred_alignment(k[np.ix_(order, order)], other) for order in orders])
    h = centring(5)
    one, two = h @ k @ h, h @ other @ h
    expected = np.trace(one) * np.trace(two) / (4 * np.linalg.norm(one) * np.linalg.norm(two))
    assert mean == pytest.approx(expected, rel=1e-12)


@BIASED
@pytest.mark.parametrize(("n", "p", "q"), [(40, 20, 60), (30, 300, 300)])
def test_unrelated_features_score_by_their_widths_unless_debiased(n, p, q):
    pairs = [gaussian_kernels(seed, n, p, q) for seed in range(30)]
    biased, debiased = (np.array([centred_alignment(*pair, debiased=each) for pair in pairs]) for each in (False, True))
    # The formula is of the leading order in 1/n.
    assert biased.mean() == pytest.approx(np.sqrt(p * q / ((p + n) * (q + n))), abs=1 / n)
    assert abs(debiased.mean()) < 4 * debiased.std() / np.sqrt(len(pairs))


def test_few_samples_warn_once_in_a_loop_and_many_do_not():
    k, other = gaussian_kernels(0, 20, 100, 100)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(3):
            centred_alignment(k + np.eye(20), other)
            centred_alignment(k, other, debiased=True)
    [warning] = shown
    assert "20 samples" in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centred_alignment(*gaussian_kernels(0, 200, 100, 100))
        with jax.enable_x64(True):
            assert float(jit(centred_alignment)(k, other)) > 0.7


@BIASED
def test_every_library_gives_the_same_numbers():
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    k, other = kernels()
    y = np.random.default_rng(1).normal(size=6)

    def measures(one, two, targets):
        return [
            kernel_distance(one, two),
            kernel_distance(one, two, centred=True),
            relative_change(one, two),
            centred_alignment(one, two),
            centred_alignment(one, two, debiased=True),
            target_alignment(one, targets),
            target_alignment(one, targets, centred=True),
        ]

    expected = measures(k, other, y)
    with jax.enable_x64(True):
        for found in (jit(measures)(k, other, y), measures(*map(torch.from_numpy, (k, other, y)))):
            np.testing.assert_allclose([float(each) for each in found], expected, rtol=1e-10)


def test_the_distance_can_be_compiled_and_takes_full_kernels():
    k = np.random.default_rng(0).normal(size=(3, 2, 3, 2))
    with jax.enable_x64(True):
        found = jit(kernel_distance)(jax.device_put(k), jax.device_put(k + 1))
    np.testing.assert_allclose(found, kernel_distance(k.reshape(6, 6), k.reshape(6, 6) + 1), rtol=1e-12)


def test_kernels_of_one_example_are_at_no_distance_and_warn():
    with pytest.warns(UserWarning, match="one example"):
        assert kernel_distance(np.array([[2.0]]), np.array([[3.0]])) == 0


def test_computed_kernels_are_compared_by_their_values():
    k, other = kernels()
    one, two = (NeuralTangentKernel(each, ("sample", "other_sample"), "trace", "", "", "") for each in (k, other))
    assert kernel_distance(one, two) == kernel_distance(k, other)
    assert kernel_distance(one, other, centred=True) == kernel_distance(k, other, centred=True)
    assert relative_change(one, two) == relative_change(k, other)
    assert target_alignment(one, np.arange(len(k))) == target_alignment(k, np.arange(len(k)))


@pytest.mark.parametrize(
    "call",
    [
        lambda k, _: kernel_distance(k, np.zeros((6, 6))),
        lambda k, _: kernel_distance(k, k[:5, :5]),
        lambda k, _: kernel_distance(k[:, :5], k[:, :5]),
        lambda k, _: kernel_distance(k, np.where(np.eye(6) > 0, np.nan, k)),
        lambda k, _: kernel_distance(k, np.full((6, 6), np.inf)),
        lambda k, _: kernel_distance(k, np.full((6, 6), 3.7), centred=True),
        lambda k, _: centred_alignment(k, np.full((6, 6), 0.1)),
        lambda k, _: centred_alignment(k, np.full((6, 6), 0.1), debiased=True),
        lambda k, _: centred_alignment(k, np.eye(6), debiased=True),
        lambda k, _: centred_alignment(k[:3, :3], k[:3, :3], debiased=True),
        lambda k, _: centred_alignment(k, k, debiased="yes"),
        lambda k, _: relative_change(np.zeros((6, 6)), k),
        lambda k, _: relative_change(k, np.full((6, 6), np.nan)),
        lambda k, _: kernel_velocity(k, k, duration=0.0),
        lambda k, _: target_alignment(k, np.zeros(6)),
        lambda k, _: target_alignment(k, np.full(6, 0.1), centred=True),
        lambda k, _: target_alignment(k, np.ones(5)),
    ],
)
def test_bad_input_is_refused(call):
    k, _ = kernels()
    with pytest.raises(InputError), np.errstate(invalid="ignore"):
        call(k, np.ones(6))


@pytest.mark.slow
def test_kernels_of_single_precision_from_jax_are_compared_in_double_where_there_is_any():
    k, _ = kernels()
    single = k.astype(np.float32)
    shifted = single + np.float32(1e-4) * np.eye(6, dtype=np.float32)
    with jax.enable_x64(True):
        found = kernel_distance(jax.device_put(single), jax.device_put(shifted))
    # In single precision so small a distance would be off by a part in ten thousand.
    assert float(found) == pytest.approx(float(kernel_distance(single.astype(float), shifted.astype(float))), rel=1e-9)
