from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.stats import binom

from dynascope.errors import InputError
from dynascope.tasks.parity.skills import skill_frequencies
from dynascope.theory.skills.multilinear import expected_loss, skill_strengths, training_loss

MODEL = {"target_scale": 1.5, "initial_strength": 0.02}
COUNTS = [110, 40, 22, 15, 8, 5]

models = st.fixed_dictionaries(
    {
        "target_scale": st.floats(0.5, 5),
        "initial_strength": st.floats(1e-6, 0.4),
        "learning_rate": st.floats(0.01, 2),
    }
)


def test_losses_golden():
    frequencies = skill_frequencies(6, 0.5)
    golden = [0.546900077583, 0.193358376745, 0.105250969004, 0.068362509698, 0.048916230015, 0.037211836955]
    # Golden numbers are stored with 12 digits.
    np.testing.assert_allclose(frequencies, golden, rtol=0, atol=1e-12)
    loss = training_loss([20], frequencies, counts=COUNTS, neurons=4, **MODEL)
    np.testing.assert_allclose(loss, 0.113539682531, rtol=1e-11)
    np.testing.assert_allclose(
        expected_loss([20], [200], frequencies, neurons=4, **MODEL), [[0.129950878632]], rtol=1e-11
    )


@settings(max_examples=10, deadline=None)
@given(models, st.integers(1, 6))
def test_strengths_are_those_of_gradient_flow(model, neurons):
    scale, rate = model["target_scale"], model["learning_rate"]
    shares = np.array(COUNTS)[:neurons] / sum(COUNTS)

    def velocity(_, layers):
        a, b = layers.reshape(2, -1)
        return rate * np.concatenate([shares * b * (scale - a * b), shares * a * (scale - a * b)])

    times = np.linspace(0, 20, 5)
    start = np.full(2 * neurons, np.sqrt(model["initial_strength"]))
    trained = solve_ivp(velocity, (0, 20), start, "DOP853", times, rtol=1e-11, atol=1e-13).y.reshape(2, neurons, -1)
    strength = skill_strengths(times, skill_frequencies(6, 0.5), counts=COUNTS, neurons=neurons, **model)
    # The integrator's tolerance, amplified by the growth from a small initialisation.
    np.testing.assert_allclose(strength[:, :neurons], trained.prod(axis=0).T, rtol=0, atol=1e-7)
    assert not strength[:, neurons:].any()


@settings(max_examples=10, deadline=None)
@given(models, st.integers(0, 6), st.booleans())
def test_the_loss_is_that_of_the_strengths(model, neurons, on_counts):
    frequencies = skill_frequencies(6, 0.5)
    setting = {**model, "neurons": neurons, "counts": COUNTS if on_counts else None}
    times = [0, 1.0, 30.0]
    missing = (model["target_scale"] - skill_strengths(times, frequencies, **setting)) ** 2
    # Rounding of S − R, which the loss does not form.
    np.testing.assert_allclose(training_loss(times, frequencies, **setting), missing @ frequencies / 2, atol=1e-13)


@pytest.mark.slow
def test_expectation_agrees_with_drawn_training_sets():
    frequencies, generator = skill_frequencies(5, 0.6), np.random.default_rng(3)
    draws = generator.multinomial(60, frequencies, 2000)
    losses = np.array([training_loss([30], frequencies, counts=counts, **MODEL)[0] for counts in draws])
    expected = expected_loss([30], [60], frequencies, **MODEL)[0, 0]
    # Four standard errors of the mean.
    assert abs(losses.mean() - expected) < 4 * losses.std() / np.sqrt(len(draws))


@pytest.mark.parametrize(
    ("size", "frequency", "time"),
    [(10**5, 0.3, 5.0), (10**6, 0.5, 30.0), (10**6, 0.01, 300.0), (3000, 0.1, 1e4), (50, 1.0, 3.0)],
)
def test_skipped_numbers_of_samples_change_nothing(size, frequency, time):
    counts = np.arange(size + 1)
    unlearned = 1 / (1 + np.exp(np.minimum(2 * 1.5 * time * counts / size - np.log(74), 700)))
    every = 1.5**2 / 2 * frequency * (binom.pmf(counts, size, frequency) @ unlearned**2)
    # The probabilities of binom.pmf have a relative error of 1e-13.
    np.testing.assert_allclose(expected_loss([time], [size], [frequency], **MODEL), [[every]], rtol=1e-12)


def test_very_many_samples_are_like_fresh_ones():
    frequencies = skill_frequencies(5, 0.6)
    times = [0.0, 5.0, 40.0]
    fresh = training_loss(times, frequencies, **MODEL)
    many = expected_loss(times, [10**9, 10**13], frequencies, **MODEL)
    # Relative to fresh samples, the excess is (2 η S T)² P(1 − P)/D, about 1e4/D.
    np.testing.assert_allclose(many[:, 0], fresh, rtol=3e-5)
    np.testing.assert_allclose(many[:, 1], fresh, rtol=3e-9)


@settings(max_examples=12, deadline=None)
@given(models, st.integers(1, 8))
def test_loss_never_increases_with_time_or_neurons_nor_at_the_end_with_samples(model, neurons):
    frequencies = skill_frequencies(8, 0.4)
    times = [0.0, 0.5, 3.0, 50.0, np.inf]
    loss = expected_loss(times, [1, 2, 10, 300], frequencies, neurons=neurons, **model)
    wider = expected_loss(times, [1, 2, 10, 300], frequencies, neurons=neurons + 1, **model)
    tiny = 1e-14 * loss[0, 0]
    assert np.all(np.diff(loss, axis=0) <= tiny)
    # Early on few samples can be better, as a skill that is drawn too often starts the sooner.
    assert np.all(np.diff(loss[-1]) <= tiny)
    assert np.all(wider <= loss + tiny)
    start = (model["target_scale"] - model["initial_strength"]) ** 2 / 2 * frequencies[:neurons].sum()
    np.testing.assert_allclose(loss[0], start + model["target_scale"] ** 2 / 2 * frequencies[neurons:].sum())


def test_a_whole_number_of_any_size_is_a_scale():
    setting = {"initial_strength": 0.01, "learning_rate": 1e-12}
    loss, same = (training_loss([2.0], [0.5, 0.5], target_scale=scale, **setting) for scale in (4 * 10**9, 4e9))
    np.testing.assert_array_equal(loss, same)
    assert loss > 0


def test_after_all_time_only_unseen_skills_are_left():
    frequencies = np.array([0.7, 0.3])
    left = expected_loss([1e5, np.inf], [10], frequencies, **MODEL)
    np.testing.assert_allclose(left[1], 1.48**2 / 2 * (frequencies @ (1 - frequencies) ** 10))
    # After 2 η S T/D = 3e4 for a single sample the logistic is at its end.
    np.testing.assert_allclose(left[0], left[1], rtol=1e-12)
    assert expected_loss([np.inf], [10], [1.0], **MODEL) == 0
    strength = skill_strengths([np.inf], frequencies, counts=[4, 0], **MODEL)
    np.testing.assert_allclose(strength, [[1.5, 0.02]])


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("times", {"times": [-1.0]}),
        ("times", {"times": [np.nan]}),
        ("times", {"times": 3.0}),
        ("frequencies", {"frequencies": [0.7, 0.5]}),
        ("frequencies", {"frequencies": [0.7, 0.0]}),
        ("frequencies", {"frequencies": []}),
        ("target_scale", {"target_scale": 0.0}),
        ("initial_strength", {"initial_strength": 1.5}),
        ("initial_strength", {"initial_strength": -0.1}),
        ("learning_rate", {"learning_rate": np.inf}),
        ("counts", {"counts": [1, -1]}),
        ("counts", {"counts": [0, 0]}),
        ("counts", {"counts": [1, 2, 3]}),
        ("neurons", {"neurons": -1}),
    ],
)
def test_bad_input_is_refused_by_name(argument, change):
    given = {"times": [1.0], "frequencies": [0.7, 0.3], **MODEL, **change}
    for function in (skill_strengths, training_loss):
        with pytest.raises(InputError) as refusal:
            function(**given)
        assert refusal.value.argument == argument


@pytest.mark.parametrize("samples", [[0], [1.5], [[3]], [np.inf]])
def test_sizes_that_are_no_sizes_are_refused(samples):
    with pytest.raises(InputError) as refusal:
        expected_loss([1.0], samples, [0.7, 0.3], **MODEL)
    assert refusal.value.argument == "samples"
