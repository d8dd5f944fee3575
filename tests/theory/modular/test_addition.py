from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.flows import GradientFlow, gradient_flow
from dynascope.groups.encodings import encoding_from_frequencies
from dynascope.networks import TwoLayer
from dynascope.results.steps_seen import crossing_times
from dynascope.tasks.algebra.modular_addition import ModularAddition, modular_addition
from dynascope.theory.modular.addition import (
    addition_utility,
    maximal_utilities,
    maximiser,
    modular_addition_staircase,
    unexplained_fraction,
)

GOLDEN = encoding_from_frequencies(17, {1: 0.8, 2: 0.52, 4: 0.36}, {1: 0.4, 2: -0.9, 4: 1.7})


def drawn_encoding(p: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=p)
    return x - x.mean()


def golden_neurons() -> np.ndarray:
    i, b, k = np.ogrid[:30, :3, :3]
    phases = 2 * np.pi * np.mod(100 * np.sin(12.9898 * (i + 1) + 78.233 * (b + 1) + 37.719 * (k + 1)), 1)
    shares = np.where(k == i % 3, 1.0, 0.02)
    angles = 2 * np.pi / 17 * np.multiply.outer([1, 2, 4], np.arange(17))
    rows = np.sum(shares[..., None] * np.cos(angles + phases[..., None]), axis=2).reshape(30, -1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def drops(p: int, rows: np.ndarray, encoding: np.ndarray, staircase, scale: float, **options):
    network = TwoLayer(2 * p, len(rows), p, activation="quadratic").with_neurons(rows)
    run = gradient_flow(ModularAddition(encoding), network, GradientFlow(save=4000, **options), scale=scale)
    middles = (staircase.levels[1:] + staircase.levels[:-1]) / 2
    return crossing_times(run["time"].to_numpy(), run["loss"].to_numpy(), middles), run


@settings(max_examples=12, deadline=None)
@given(st.integers(3, 8), st.integers(0, 1000))
def test_the_utility_is_the_average_of_the_output_against_the_target(p, seed):
    x = drawn_encoding(p, seed)
    task = modular_addition(x)
    network = TwoLayer(2 * p, 4, p, activation="quadratic", seed=seed)
    rows = np.asarray(network.neurons)
    responses = (task.inputs @ network.first) ** 2
    direct = np.mean(responses * (task.targets @ network.second.T), axis=0)
    # Sums of some hundred products.
    np.testing.assert_allclose(addition_utility(rows, x), direct, rtol=0, atol=1e-13 * np.abs(direct).max() + 1e-13)


def largest_utility(x: np.ndarray, attempts: int = 6) -> float:
    """Over the sphere, by ascent from random neurons."""
    p, draw, best = len(x), np.random.default_rng(2), 0.0

    def descent(row):
        steps = 1e-4 * np.eye(3 * p)
        values = addition_utility(np.concatenate([row + steps, row - steps, row[None]]), x)
        slope = (values[: 3 * p] - values[3 * p : -1]) / 2e-4
        norm = np.linalg.norm(row)
        return -values[-1] / norm**3, 3 * values[-1] * row / norm**5 - slope / norm**3

    for _ in range(attempts):
        found = minimize(descent, draw.normal(size=3 * p), jac=True, method="BFGS", options={"gtol": 1e-10})
        best = max(best, -found.fun)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("p", [3, 4, 5, 8, 11])
def test_no_neuron_on_the_sphere_has_more_utility_than_the_closed_form(p):
    x = drawn_encoding(p, 1)
    # The error of the slopes enters the maximum squared.
    assert largest_utility(x) == pytest.approx(maximal_utilities(x).max(), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("p", "frequency"), [(5, 1), (5, 2), (6, 3), (8, 4), (8, 3)])
def test_the_largest_utility_of_a_single_frequency_is_its_closed_form(p, frequency):
    x = drawn_encoding(p, 3)
    single = np.fft.irfft(np.where(np.arange(p // 2 + 1) == frequency, np.fft.rfft(x), 0), p)
    assert largest_utility(single) == pytest.approx(maximal_utilities(x)[frequency - 1], rel=1e-8)


@given(st.integers(3, 12), st.integers(0, 1000), st.tuples(st.floats(-7, 7), st.floats(-7, 7)))
def test_a_maximiser_has_unit_norm_and_the_largest_utility_whatever_its_phases(p, seed, phases):
    x = drawn_encoding(p, seed)
    for frequency, largest in enumerate(maximal_utilities(x), start=1):
        row = maximiser(x, frequency, phases)
        assert np.linalg.norm(row) == pytest.approx(1.0, rel=1e-12)
        assert addition_utility(row[None], x)[0] == pytest.approx(largest, rel=1e-10)


@given(st.integers(3, 12), st.integers(0, 1000), st.floats(0.1, 10), st.integers(0, 11))
def test_the_staircase_does_not_see_shifts_and_scales_with_the_encoding(p, seed, factor, shift):
    x = drawn_encoding(p, seed)
    one = modular_addition_staircase(x, scale=1e-6)
    other = modular_addition_staircase(factor * np.roll(x, shift), scale=1e-6)
    np.testing.assert_allclose(other.levels, factor**2 * one.levels, rtol=1e-9, atol=1e-12 * factor**2 * one.levels[0])
    np.testing.assert_allclose(other.accelerated_times, one.accelerated_times / factor**3, rtol=1e-8)
    assert one.levels[0] == pytest.approx(x @ x / 2)
    assert one.levels[-1] == pytest.approx(0.0, abs=1e-12 * one.levels[0])
    assert np.all(np.diff(one.levels) < 0)
    assert np.all(np.diff(one.accelerated_times) > 0)


def test_golden_staircase():
    staircase = modular_addition_staircase(GOLDEN, scale=1e-6)
    utilities = maximal_utilities(GOLDEN)[[0, 1, 3]]
    np.testing.assert_allclose(utilities, [1.220917930326, 0.335294586616, 0.111256146401], rtol=1e-11)
    np.testing.assert_allclose(
        staircase.accelerated_times, [0.273018623983, 0.994150656286, 2.996089152072], rtol=1e-11
    )
    np.testing.assert_allclose(staircase.levels, [4.42, 1.7, 0.5508, 0.0], rtol=1e-12, atol=1e-12)
    assert staircase.learned == ("frequency 1", "frequency 2", "frequency 4")
    assert (staircase.degree, staircase.normalised, staircase.warnings) == (3, True, ())


@pytest.mark.slow
def test_the_trained_normalised_flow_has_the_times_levels_and_slopes_of_the_theory():
    rows, times = golden_neurons(), {}
    for scale in (1e-5, 1e-7):
        staircase = modular_addition_staircase(GOLDEN, scale=scale, neurons=rows)
        duration = 1.3 * staircase.times[-1]
        times[scale], run = drops(17, rows, GOLDEN, staircase, scale, normalised=True, duration=duration)
        # Up to the time in which a neuron grows by a factor of e, 1/(3 U*).
        assert np.all(np.abs(staircase.times - times[scale]) < 1.0 * staircase.accelerated_times)
        between = np.interp((times[scale][1:] + times[scale][:-1]) / 2, run["time"], run["loss"])
        # What the active neurons have not yet finished when the next ones come.
        np.testing.assert_allclose(between, staircase.levels[1:3], rtol=0, atol=1e-5 * staircase.levels[0])
    slopes = (times[1e-7] - times[1e-5]) / np.log(100)
    # The first drop is interpolated from some ten of the 4000 times.
    np.testing.assert_allclose(slopes, staircase.accelerated_times, rtol=1e-4)
    np.testing.assert_allclose(slopes, [0.273017, 0.994151, 2.996089], rtol=1e-4)
    np.testing.assert_allclose(times[1e-7] / np.log(1e7), [0.2695, 1.0008, 3.0246], atol=6e-5)


@pytest.mark.slow
def test_the_trained_plain_flow_begins_each_drop_with_the_first_neuron_that_blows_up():
    rows, errors = golden_neurons(), []
    for scale in (0.04, 0.02):
        staircase = modular_addition_staircase(GOLDEN, scale=scale, neurons=rows, normalised=False)
        _, run = drops(17, rows, GOLDEN, staircase, scale, duration=1.2 * staircase.times[-1], solver="stabilised")
        falls = staircase.levels[:-1] - (staircase.levels[:-1] - staircase.levels[1:]) / 30
        seen = crossing_times(run["time"].to_numpy(), run["loss"].to_numpy(), falls)
        onset = staircase.features["onset_time"][1]
        assert np.all(onset >= staircase.features["earliest_onset"][1])
        errors.append(np.abs(onset / seen - 1))
    assert np.all(errors[1] < 0.1)
    # The errors are proportional to the scale.
    assert np.all(errors[1] < 0.75 * errors[0])


def test_equal_coefficients_jump_together():
    x = np.eye(7)[0] - 1 / 7
    staircase = modular_addition_staircase(x, scale=1e-6)
    assert len(staircase.times) == 1
    assert "1, 2, 3" in staircase.learned[0]
    np.testing.assert_allclose(staircase.levels, [3 / 7, 0], atol=1e-14)


def test_the_frequency_p_half_has_an_advantage_of_root_two():
    # It would come second by |x̂|, which is 1.1 times as large at frequency 3.
    x = encoding_from_frequencies(16, {3: 1.1 / 8, 8: 1 / 16})
    assert np.abs(np.fft.fft(x))[[3, 8]] == pytest.approx([1.1, 1.0])
    staircase = modular_addition_staircase(x, scale=1e-6)
    assert staircase.features["frequency_learned"][1].tolist() == [8, 3]
    assert staircase.levels[0] - staircase.levels[1] == pytest.approx(1 / 32)


def test_neurons_of_larger_norm_are_sooner():
    rows = golden_neurons()
    one = modular_addition_staircase(GOLDEN, scale=1e-6, neurons=rows)
    other = modular_addition_staircase(GOLDEN, scale=1e-7, neurons=10 * rows)
    np.testing.assert_allclose(one.times, other.times, rtol=1e-9)
    plain = modular_addition_staircase(GOLDEN, scale=1e-2, neurons=rows, normalised=False)
    sooner = modular_addition_staircase(GOLDEN, scale=1e-3, neurons=10 * rows, normalised=False)
    np.testing.assert_allclose(plain.times, sooner.times, rtol=1e-12)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000))
def test_the_order_of_the_neurons_does_not_matter(seed):
    rows = golden_neurons()
    turned = np.random.default_rng(seed).permutation(rows)
    for options in ({"scale": 1e-6}, {"scale": 1e-2, "normalised": False}):
        one = modular_addition_staircase(GOLDEN, neurons=rows, **options)
        other = modular_addition_staircase(GOLDEN, neurons=turned, **options)
        np.testing.assert_allclose(one.times, other.times, rtol=1e-12)
        assert one.learned == other.learned


def test_three_times_a_frequency_is_warned_of_and_not_judged():
    x = encoding_from_frequencies(11, {1: 1.0, 2: 0.7, 3: 0.5})
    staircase = modular_addition_staircase(x, scale=1e-6)
    assert [bool(reason) for reason in staircase.slow] == [False, False, True]
    assert any("frequency 3" in warning for warning in staircase.warnings)
    # 3 · 4 ≡ 1 modulo 11, but 1 is learned first.
    x = encoding_from_frequencies(11, {1: 1.0, 4: 0.7})
    assert modular_addition_staircase(x, scale=1e-6).warnings == ()


def test_too_few_neurons_are_warned_of():
    rows = golden_neurons()[:12]
    for options in ({"scale": 1e-6}, {"scale": 1e-2, "normalised": False}):
        staircase = modular_addition_staircase(GOLDEN, neurons=rows, **options)
        assert all(staircase.slow)
        assert sum("requires 6" in warning for warning in staircase.warnings) == 3


def test_equal_phase_differences_are_warned_of():
    rows = np.stack([maximiser(GOLDEN, 1, (phase, phase + 0.3)) for phase in np.arange(8.0)])
    staircase = modular_addition_staircase(GOLDEN, scale=1e-6, neurons=rows)
    assert any("phase difference" in warning for warning in staircase.warnings)


def test_neighbours_that_overlap_and_starts_that_are_large_are_warned_of():
    x = encoding_from_frequencies(11, {1: 1.0, 2: 0.99})
    assert any("overlap" in warning for warning in modular_addition_staircase(x, scale=1e-6).warnings)
    rows = golden_neurons()
    assert any("not small" in w for w in modular_addition_staircase(GOLDEN, scale=0.5, neurons=rows).warnings)


@pytest.mark.slow
def test_the_fewest_neurons_of_a_frequency_agree_with_the_best_that_optimisation_finds():
    x = encoding_from_frequencies(5, {1: 1.0})
    for neurons in (1, 6):
        found = smallest_loss(x, neurons)
        # One neuron has a closed optimum, six reach zero up to the tolerance of the optimiser.
        assert found / (x @ x / 2) == pytest.approx(unexplained_fraction(neurons), abs=1e-6)
    assert [round(unexplained_fraction(n), 6) for n in (0, 2, 3, 4, 5, 60)] == [1, 0.555556, 0.325635, 0.166667, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("neurons", [2, 3, 4])
def test_fewer_neurons_approach_their_infimum_from_above(neurons):
    x = encoding_from_frequencies(5, {1: 1.0})
    share = smallest_loss(x, neurons) / (x @ x / 2)
    # Approached with growing weights, so that the optimiser stops above.
    assert unexplained_fraction(neurons) - 1e-6 < share < unexplained_fraction(neurons) + 0.02


MOST = 6  # neurons of the network, of which some may be left out as rows of zeros


@functools.cache
def loss_and_slope(*encoding: float):
    import jax

    p, task = len(encoding), ModularAddition(np.array(encoding))
    network = TwoLayer(2 * p, MOST, p, activation="quadratic")
    return jit(jax.value_and_grad(lambda flat: task.loss(network.with_neurons(flat.reshape(MOST, -1)))))


def smallest_loss(x: np.ndarray, neurons: int) -> float:
    import jax

    size = 3 * len(x) * neurons

    def value(present: np.ndarray) -> tuple[float, np.ndarray]:
        found, slope = loss_and_slope(*x.tolist())(np.append(present, np.zeros(3 * len(x) * MOST - size)))
        return float(found), np.asarray(slope)[:size]

    with jax.enable_x64(True):
        draw = np.random.default_rng(0)
        starts = (draw.normal(size=size) for _ in range(3))
        return min(
            minimize(value, start, jac=True, method="BFGS", options={"maxiter": 2000, "gtol": 1e-9}).fun
            for start in starts
        )


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ([1.0, -1.0], "length 2"),
        (np.zeros(5), "zero"),
        ([1.0, 2.0, 3.0], "mean 2: subtract the mean"),
        (np.eye(3), "shape"),
        ([1.0, np.nan, -1.0], "choose finite numbers"),
    ],
)
def test_an_encoding_outside_the_domain_is_refused(encoding, words):
    for function in (maximal_utilities, lambda x: modular_addition_staircase(x, scale=1e-3)):
        with pytest.raises(InputError, match=words) as refusal:
            function(encoding)
        assert refusal.value.argument == "encoding"


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"scale": 1.0}, "scale"),
        ({"scale": 0.0}, "scale"),
        ({"scale": 1e-3, "normalised": False}, "neurons"),
        ({"scale": 1e-3, "neurons": np.zeros((2, 51))}, "neurons"),
        ({"scale": 1e-3, "neurons": np.zeros((0, 51))}, "neurons"),
        ({"scale": 1e-3, "neurons": np.ones((2, 50))}, "neurons"),
    ],
)
def test_a_staircase_without_meaning_is_refused(options, argument):
    with pytest.raises(InputError) as refusal:
        modular_addition_staircase(GOLDEN, **options)
    assert refusal.value.argument == argument


def test_a_maximiser_of_a_frequency_that_is_not_there_is_refused():
    for frequency in (0, 3, 9):
        with pytest.raises(InputError, match="choose one of 1, 2, 4"):
            maximiser(GOLDEN, frequency)
    with pytest.raises(InputError):
        unexplained_fraction(-1)
