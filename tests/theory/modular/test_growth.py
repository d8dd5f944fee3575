from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.modular.addition import addition_utility, maximal_utilities, maximiser
from dynascope.theory.modular.growth import Spectrum, Starts

X11 = 2 * 3 / 11 * np.cos(2 * np.pi * np.arange(11) / 11 + 0.4)


def neuron(z: np.ndarray, p: int, frequency: int) -> np.ndarray:
    spectrum = np.zeros((3, p // 2 + 1), complex)
    spectrum[:, frequency] = z
    return np.fft.irfft(spectrum, p).ravel()


def blow_up_times(neurons: np.ndarray, encoding: np.ndarray) -> np.ndarray:
    spectrum = Spectrum(encoding)
    return spectrum.blow_up_times(spectrum.of(neurons))


def drawn_encoding(p: int, seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=p)
    return x - x.mean()


def test_golden_blow_up():
    time = blow_up_times(neuron(np.array([0.5 + 0.2j, 0.3 - 0.4j, 0.1 + 0.6j]), 11, 1)[None], X11)[0]
    assert time[0] == pytest.approx(6.80799, rel=1e-6)
    assert np.all(np.isinf(time[1:]))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.booleans())
def test_the_elliptic_integral_agrees_with_an_integrator_in_a_clock_without_blow_up(seed, against):
    draw = np.random.default_rng(seed)
    z = draw.normal(size=3) + 1j * draw.normal(size=3)
    if (np.exp(-0.4j) * z[0] * z[1] * z[2].conj()).real > 0 and against:
        # Phases against the target: the neuron shrinks before it grows.
        z[2] *= -1

    def velocity(_, state):
        u, v, w = state[:3]
        size, turn = np.linalg.norm(state[:3]), np.exp(0.4j)
        drive = 2 * 27 / 121 / size
        growth = [drive * turn * v.conjugate() * w, drive * turn * u.conjugate() * w, drive * turn.conjugate() * u * v]
        return np.array([*growth, 1 / size])

    def at_infinity(_, state):
        return np.linalg.norm(state[:3]) - 1e12

    at_infinity.terminal = True
    path = solve_ivp(velocity, (0, 1e4), np.append(z, 0.0), "DOP853", rtol=1e-11, atol=1e-13, events=at_infinity)
    # What is left at the norm 1e12 is smaller than the error of the integrator.
    assert path.y[3, -1].real == pytest.approx(blow_up_times(neuron(z, 11, 1)[None], X11)[0, 0], rel=1e-8)


@given(st.integers(3, 12), st.integers(0, 1000))
def test_a_maximiser_blows_up_at_the_lower_bound_and_nothing_sooner(p, seed):
    x = drawn_encoding(p, seed)
    bounds = 1 / (3 * maximal_utilities(x))
    for k, bound in enumerate(bounds):
        aligned = maximiser(x, k + 1, (0.3, 1.2))
        assert blow_up_times(aligned[None], x)[0, k] == pytest.approx(bound, rel=1e-9)
    rows = np.random.default_rng(seed).normal(size=(20, 3 * p))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.all(blow_up_times(rows, x) >= bounds * (1 - 1e-9))


@given(st.integers(3, 12), st.integers(0, 1000), st.floats(1e-8, 1e8))
def test_a_start_that_is_larger_by_a_factor_is_sooner_by_it(p, seed, factor):
    x, rows = drawn_encoding(p, seed), np.random.default_rng(seed).normal(size=(5, 3 * p))
    np.testing.assert_allclose(blow_up_times(factor * rows, x) * factor, blow_up_times(rows, x), rtol=1e-7)


def test_a_neuron_that_lacks_two_parts_never_grows():
    rows = np.concatenate([maximiser(X11, 1)[:11], np.zeros(22)])[None]
    assert np.all(np.isinf(blow_up_times(rows, X11)))
    assert Starts.of(Spectrum(X11), rows).learned.tolist() == [-1]


@pytest.mark.slow
def test_a_neuron_learns_the_frequency_that_would_blow_up_first():
    x = drawn_encoding(9, 5)
    rows = np.random.default_rng(6).normal(size=(12, 27))
    starts = Starts.of(Spectrum(x), rows)
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    steps = 1e-4 * np.eye(27)
    # The direction by small steps, its slope by differences.
    for _ in range(400):
        around = np.stack([directions[:, None] + steps, directions[:, None] - steps])
        ahead, behind = addition_utility(around.reshape(-1, 27), x).reshape(2, 12, 27)
        slopes = ahead - behind
        directions = directions + 0.3 / np.linalg.norm(slopes, axis=1, keepdims=True) * slopes
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reached = addition_utility(directions, x)
    np.testing.assert_allclose(reached, maximal_utilities(x)[starts.learned], rtol=1e-3)


def test_the_gain_is_what_alignment_leaves_of_the_growth_of_the_norm():
    x = drawn_encoding(7, 1)
    spectrum = Spectrum(x)
    aligned = maximiser(x, 2, (0.1, 0.2))
    # A neuron that is aligned from the start grows at the final rate from the start.
    np.testing.assert_allclose(Starts.of(spectrum, 3 * aligned[None]).gain, np.log(3), atol=1e-9)
    start = np.random.default_rng(3).normal(size=(4, 21))
    starts = Starts.of(spectrum, start)
    rates = 3 * maximal_utilities(x)[starts.learned]

    def velocity(_, state):
        rows = state.reshape(4, 3, 7)
        u, v, w = np.moveaxis(np.fft.fft(rows), 1, 0)
        xs = np.fft.fft(x)
        drive = 2 * np.abs(xs) ** 2 / 49 * xs
        growth = np.stack([drive * v.conj() * w, drive * u.conj() * w, drive.conj() * u * v], axis=1)
        return (np.fft.ifft(growth).real / np.linalg.norm(rows, axis=(1, 2))[:, None, None]).ravel()

    time = 12 / rates.min()
    end = solve_ivp(velocity, (0, time), start.ravel(), "DOP853", rtol=1e-10, atol=1e-12).y[:, -1].reshape(4, -1)
    # Alignment is complete to e^−12 or better, and the gain is integrated to 1e-4.
    np.testing.assert_allclose(np.log(np.linalg.norm(end, axis=1)) - rates * time, starts.gain, atol=1e-3)


@pytest.mark.parametrize("neurons", [np.ones((2, 32)), np.ones(33), np.full((1, 33), np.nan)])
def test_neurons_that_do_not_fit_are_refused(neurons):
    with pytest.raises(InputError) as refusal:
        addition_utility(neurons, X11)
    assert refusal.value.argument == "neurons"
