from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.tasks.parity.skills import skill_frequencies
from dynascope.theory.scalar_networks import mode_strength
from dynascope.theory.skills import (
    data_emergence,
    half_strength_steps,
    parameter_emergence,
    skill_strength,
    time_emergence,
)

FREQUENCIES = skill_frequencies(5, 0.6)
PUBLISHED = {"offset": np.log(5 / 0.004 - 1), "learning_rate": 0.05, "target_scale": 5.0, "rate": 1 / 22}
SETTING = {"offset": 6.0, "learning_rate": 0.1, "target_scale": 2.0}


def test_time_golden():
    strength = time_emergence([3000], FREQUENCIES, **PUBLISHED)[0]
    # Golden numbers are stored with 12 digits.
    np.testing.assert_allclose(
        strength[1:], [0.997974855592, 0.45949230574, 0.061066731852, 0.017072517937], rtol=0, atol=6e-13
    )
    assert 0 < 1 - strength[0] < 1e-12


@pytest.mark.parametrize(
    ("definition", "samples", "golden"),
    [
        ("loss_equivalent", 1000, [0.491283548288, 0.130786630507, 0.066074147628, 0.041169050481, 0.028624751627]),
        ("loss_equivalent", 3000, [1, 0.484110890865, 0.214760412175, 0.129337057326, 0.08857127009]),
        ("loss_equivalent", 10000, [1, 1, 1, 0.56116534025, 0.34008384376]),
        ("correlation", 1000, [0.740842047699, 0.244386735643, 0.127741383633, 0.080617557742, 0.056412275283]),
        ("correlation", 3000, [1, 0.733160206929, 0.383224150898, 0.241852673227, 0.169236825848]),
        ("correlation", 10000, [1, 1, 1, 0.80617557742, 0.564122752828]),
    ],
)
def test_data_golden(definition, samples, golden):
    found = data_emergence([samples], FREQUENCIES, 800, definition=definition)[0]
    # Golden numbers are stored with 12 digits.
    np.testing.assert_allclose(found, golden, rtol=0, atol=6e-13)


def test_parameter_golden():
    np.testing.assert_array_equal(parameter_emergence([10], 5, 4.0), [[1, 1, 0.5, 0, 0]])


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 40), st.integers(1, 9))
def test_parameters_are_filled_in_as_the_source_counts_them(neurons, needed):
    q = (neurons - 1) // needed + 1
    r = neurons - (q - 1) * needed
    k = np.arange(1, 7)
    expected = np.where(k < q, 1.0, np.where(k == q, r / needed, 0.0))
    found = parameter_emergence([neurons], 6, needed)[0]
    np.testing.assert_allclose(found, expected, atol=1e-14)
    # What is left in loss is 1 − φ.
    in_loss = parameter_emergence([neurons], 6, needed, definition="loss_equivalent")[0]
    np.testing.assert_allclose((1 - in_loss) ** 2, 1 - found, atol=1e-14)


def test_the_extended_model_has_the_rate_b_and_not_its_square():
    factor, target, learning_rate, start, frequency = 0.2, 5.0, 0.05, 0.03, 0.4
    steps = np.linspace(0, 900, 7)

    def velocity(_, weights):
        a, b = weights
        pull = learning_rate * frequency * factor * (target - factor * a * b)
        return pull * np.array([b, a])

    a, b = solve_ivp(velocity, (0, 900), [start, start], "DOP853", steps, rtol=1e-12, atol=1e-14).y
    offset = np.log(target / (factor * start**2) - 1)
    law = time_emergence(
        steps, [frequency], offset=offset, learning_rate=learning_rate, target_scale=target, rate=factor
    )
    # The integrator is good to 1e-11.
    np.testing.assert_allclose(law[:, 0], factor * a * b / target, atol=1e-9)


@pytest.mark.slow
def test_time_law_is_that_of_a_mode():
    steps = np.linspace(0, 200, 9)
    initial = 2.0 / (1 + np.exp(6.0))
    with jax.enable_x64(True):
        modes = [mode_strength(steps, 2.0, 0.3 * p, initial**0.5, initial**0.5, 0.1).strength / 2 for p in (0.7, 0.2)]
    np.testing.assert_allclose(time_emergence(steps, [0.7, 0.2], rate=0.3, **SETTING).T, modes, rtol=1e-11)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.1, 2), st.floats(0.01, 1), st.floats(0.5, 12))
def test_every_skill_is_half_learned_at_its_step(exponent, rate, offset):
    frequencies = skill_frequencies(6, exponent)
    setting = {"offset": offset, "learning_rate": 0.1, "target_scale": 2.0, "rate": rate}
    steps = half_strength_steps(frequencies, **setting)
    np.testing.assert_allclose(np.diag(time_emergence(steps, frequencies, **setting)), 0.5, rtol=1e-12)
    np.testing.assert_allclose(steps / steps[0], np.arange(1, 7) ** (exponent + 1), rtol=1e-12)
    later = time_emergence(np.append(steps, 1e12), frequencies, **setting)
    assert np.all(np.diff(later, axis=0) >= 0)
    assert np.all(later[-1] == 1)


def test_the_mean_over_training_sets_is_the_mean_over_drawn_counts():
    frequencies = [0.5, 0.3, 0.2]
    counts = np.random.default_rng(0).multinomial(30, frequencies, size=20_000)
    for definition in ("correlation", "loss_equivalent"):
        for finite_size in (False, True):
            drawn = skill_strength(counts, 10.0, definition=definition, finite_size=finite_size)
            law = data_emergence([30], frequencies, 10.0, definition=definition, finite_size=finite_size)[0]
            assert np.all(np.abs(drawn.mean(axis=0) - law) < 5 * drawn.std(axis=0) / np.sqrt(20_000))


def test_a_need_that_is_not_whole_lies_between_its_neighbours():
    low, middle, high = (data_emergence([12], [0.6], needed)[0, 0] for needed in (8.0, 7.5, 7.0))
    assert low < middle < high


def test_with_certain_samples_the_data_law_is_that_of_one_training_set():
    np.testing.assert_allclose(data_emergence([2, 7, 30], [1.0], 10)[:, 0], [0.2, 0.7, 1.0], rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: time_emergence([-1], [0.5], **SETTING), "steps"),
        (lambda: time_emergence([1], [1.5], **SETTING), "frequencies"),
        (lambda: time_emergence([1], [0.0], **SETTING), "frequencies"),
        (lambda: time_emergence([1], [0.5], **{**SETTING, "offset": np.inf}), "offset"),
        (lambda: time_emergence([1], [0.5], rate=0.0, **SETTING), "rate"),
        (lambda: half_strength_steps([0.5], **{**SETTING, "offset": -1.0}), "offset"),
        (lambda: half_strength_steps([0.5], **{**SETTING, "learning_rate": np.nan}), "learning_rate"),
        (lambda: data_emergence([0], [0.5], 3), "samples"),
        (lambda: data_emergence([3], [0.5], 0.2), "needed"),
        (lambda: parameter_emergence([-1], 2, 3.0), "neurons"),
        (lambda: parameter_emergence([1], 2, 0.0), "needed"),
        (lambda: parameter_emergence([1], 0, 1.0), "skills"),
        (lambda: data_emergence([3], [0.5], 1e300), "needed"),
        (lambda: parameter_emergence([1], 10**12, 1.0), "skills"),
    ],
)
def test_bad_input_is_named(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
