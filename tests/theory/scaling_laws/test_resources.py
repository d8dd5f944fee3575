from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks.parity.skills import skill_frequencies
from dynascope.theory.scaling_laws import data_law, parameter_law, power_laws, time_law
from dynascope.theory.skills.multilinear import expected_loss, training_loss

MODEL = {"target_scale": 1.0, "initial_strength": 0.01}


def test_golden():
    # Golden numbers are stored with 12 digits.
    np.testing.assert_allclose(time_law(1000, 0.6, **MODEL), 0.044998284887, rtol=3e-11)
    np.testing.assert_allclose(time_law(1000, 0.6, neurons=300, **MODEL), 0.045241032911, rtol=3e-11)
    np.testing.assert_allclose(time_law(1000, 0.6, skills=300, **MODEL), 0.033752213495, rtol=3e-11)
    np.testing.assert_allclose(training_loss([1000], skill_frequencies(300, 0.6), **MODEL), [0.03375221876], rtol=3e-10)
    np.testing.assert_allclose(data_law(1000, 0.6, target_scale=1.0), 0.033126193943, rtol=3e-11)
    np.testing.assert_allclose(data_law(3000, 0.6, target_scale=1.0, neurons=100), 0.026063821329, rtol=3e-11)
    np.testing.assert_allclose(parameter_law(100, 0.6, target_scale=1.0), 0.022934310717, rtol=3e-11)


@pytest.mark.parametrize("alpha", [0.3, 0.6, 0.9])
def test_time_law_of_a_finite_task_is_the_sum_over_its_skills(alpha):
    frequencies = skill_frequencies(2000, alpha)
    times = [100.0, 1e3, 1e4]
    for neurons in (50, 2000):
        found = time_law(times, alpha, neurons=neurons, skills=2000, **MODEL)
        summed = training_loss(times, frequencies, neurons=neurons, **MODEL)
        # What it costs to replace the sum by an integral: 8e-5 at T = 100, where few skills are in motion.
        np.testing.assert_allclose(found[:1], summed[:1], rtol=1e-4)
        # Once the last skill moves, the lattice shows in a loss that is small itself.
        np.testing.assert_allclose(found[1:], summed[1:], rtol=2e-6, atol=2e-5 * 0.5 * neurons**-alpha)


@pytest.mark.parametrize("alpha", [0.3, 0.6, 0.9])
def test_data_law_is_the_mean_over_training_sets(alpha):
    # Of 20 000 skills without neurons the loss is known, so N = 100 of them is a task without end but for its tail.
    skills = 20_000
    share = 1 - 2 * parameter_law(skills, alpha, target_scale=1.0)
    frequencies = skill_frequencies(skills, alpha) * share
    mean = expected_loss([np.inf], [300, 3000], frequencies, neurons=100, **MODEL)[0] + (1 - share) / 2
    found = data_law([300, 3000], alpha, neurons=100, **MODEL)
    np.testing.assert_allclose(found, mean, rtol=5e-6)


def test_laws_tend_to_the_power_laws():
    laws = power_laws(0.6, **MODEL)
    np.testing.assert_allclose(time_law(1e4, 0.6, **MODEL), laws.time.loss(1e4), rtol=1e-12)
    # β(β + 1)/2D and α/2N are the first corrections.
    np.testing.assert_allclose(data_law(1e4, 0.6, **MODEL), laws.samples.loss(1e4), rtol=3e-5)
    np.testing.assert_allclose(parameter_law(1000, 0.6, target_scale=1.0), laws.parameters.loss(1000.5), rtol=1e-7)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.15, 1.5), st.floats(1e-4, 0.4), st.floats(1, 1e4), st.floats(2, 1e4))
def test_losses_fall_with_every_resource(alpha, start, neurons, factor):
    model = {"target_scale": 1.0, "initial_strength": start}
    times = np.array([100.0, 100.0 * factor])
    loss, wider = (time_law(times, alpha, neurons=count, **model) for count in (neurons, neurons * factor))
    assert loss[0] >= loss[1] > 0
    assert np.all(wider <= loss)
    samples = data_law(times, alpha, neurons=neurons, **model)
    assert samples[0] >= samples[1] > 0
    assert data_law(100, alpha, **model) <= samples[0]


def test_no_loss_is_left_when_every_skill_has_a_neuron():
    np.testing.assert_array_equal(parameter_law([5, 7], 0.6, target_scale=2.0, skills=5), 0)
    np.testing.assert_allclose(
        parameter_law([2, 4], 0.6, target_scale=2.0, skills=5),
        2 * np.cumsum(skill_frequencies(5, 0.6)[::-1])[[2, 0]],
    )


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("times", lambda: time_law([0.0], 0.6, **MODEL)),
        ("neurons", lambda: time_law([1.0], 0.6, neurons=0, **MODEL)),
        ("neurons", lambda: time_law([1.0], 0.6, neurons=9, skills=8, **MODEL)),
        ("skills", lambda: time_law([1.0], 0.6, skills=-1, **MODEL)),
        ("samples", lambda: data_law([-1], 0.6, target_scale=1.0)),
        ("initial_strength", lambda: data_law([1], 0.6, target_scale=1.0, initial_strength=1.0)),
        ("neurons", lambda: data_law([1], 0.6, target_scale=1.0, neurons=-1)),
        ("target_scale", lambda: data_law([1], 0.6, target_scale=-1.0)),
        ("neurons", lambda: parameter_law([0], 0.6, target_scale=1.0)),
        ("exponent", lambda: parameter_law([1], -0.6, target_scale=1.0)),
    ],
)
def test_bad_input_is_refused_by_name(argument, call):
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.argument == argument
