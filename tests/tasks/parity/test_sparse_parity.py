from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import zeta

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import MLP
from dynascope.tasks.parity.skills import skill_frequencies
from dynascope.tasks.parity.sparse_parity import SparseParity

SMALL = SparseParity(skills=3, bits=9)
SHARED = SparseParity(skills=4, bits=7, relevant_bits=3, subsets="random", seed=5, target_scale=2.0)


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def parity_of(task, inputs, skill):
    """The target by its definition, one sample at a time."""
    bits = np.asarray(inputs)[:, task.skills :].astype(int)
    counts = [bits[i, task.relevant[k]].sum() for i, k in enumerate(np.asarray(skill))]
    return task.target_scale * (-1.0) ** np.array(counts)[:, None]


def test_frequencies_golden():
    # Golden numbers are stored with 12 digits.
    np.testing.assert_allclose(
        skill_frequencies(5, 0.6),
        [0.592673638159, 0.195509388514, 0.102193106906, 0.064494046194, 0.045129820226],
        rtol=0,
        atol=6e-13,
    )
    np.testing.assert_allclose(skill_frequencies(6, 0.5)[[0, 5]], [0.546900077583, 0.037211836955], atol=6e-13)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 2000), st.floats(0.05, 3))
def test_frequencies_follow_the_zeta_law(skills, exponent):
    frequencies = skill_frequencies(skills, exponent)
    normaliser = zeta(exponent + 1) - zeta(exponent + 1, skills + 1)
    # The difference of the zeta functions loses two digits when the tail is heavy.
    np.testing.assert_allclose(frequencies, np.arange(1, skills + 1) ** -(exponent + 1) / normaliser, rtol=1e-11)
    np.testing.assert_allclose(frequencies.sum(), 1, rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("task", [SHARED, SparseParity(skills=2, bits=70, relevant_bits=33)])
def test_samples_are_what_they_are_defined_to_be(task):
    inputs, targets, skill = task.sample(jax.random.key(1), 500)
    inputs, skill = np.asarray(inputs), np.asarray(skill)
    np.testing.assert_array_equal(inputs[:, : task.skills], np.eye(task.skills)[skill])
    assert set(np.unique(inputs[:, task.skills :])) == {0.0, 1.0}
    np.testing.assert_array_equal(targets, parity_of(task, inputs, skill))
    # Each bit and each pair of neighbours is a mean of 500 signs: six standard errors of 0.045.
    signs = 1 - 2 * inputs[:, task.skills :]
    assert np.abs(signs.mean(axis=0)).max() < 0.27
    assert np.abs((signs[:, 1:] * signs[:, :-1]).mean(axis=0)).max() < 0.27


@pytest.mark.slow
def test_skills_come_with_their_frequencies():
    count = 100_000
    skill = np.asarray(SparseParity().sample(jax.random.key(2), count).skill)
    expected = SparseParity().frequencies
    error = np.sqrt(expected * (1 - expected) / count)
    assert np.all(np.abs(np.bincount(skill, minlength=5) / count - expected) < 5 * error)


@pytest.mark.slow
def test_a_batch_can_be_drawn_inside_a_compiled_loop_and_equals_one_drawn_outside():
    @jit
    def means(key):
        return jax.lax.map(lambda step: SMALL.sample(jax.random.fold_in(key, step), 40).inputs, jnp.arange(4))

    key = jax.random.key(3)
    outside = [SMALL.sample(jax.random.fold_in(key, step), 40).inputs for step in range(4)]
    np.testing.assert_array_equal(means(key), outside)


def test_one_skill_can_be_drawn_alone():
    assert set(np.asarray(SMALL.sample(jax.random.key(0), 30, skill=2).skill)) == {2}


def test_numbers_have_the_type_asked_for():
    shapes = jax.eval_shape(lambda key: SMALL.sample(key, 4, dtype=jnp.float32), jax.random.key(0))
    assert shapes.inputs.dtype == shapes.targets.dtype == jnp.float32
    assert jax.eval_shape(lambda key: SMALL.sample(key, 4), jax.random.key(0)).inputs.dtype == jnp.float64


@pytest.mark.parametrize("task", [SMALL, SHARED])
def test_the_population_holds_every_input_once_with_its_probability(task):
    inputs, targets, skill, weights = task.population()
    assert len(np.unique(inputs, axis=0)) == len(inputs) == task.skills * 2**task.bits
    np.testing.assert_array_equal(targets, parity_of(task, inputs, skill))
    np.testing.assert_allclose(np.bincount(skill, weights), task.frequencies, rtol=1e-12)
    # E y² = S², and the basis of parities is orthonormal where the subsets differ.
    np.testing.assert_allclose(weights @ targets[:, 0] ** 2, task.target_scale**2, rtol=1e-12)


@pytest.mark.slow
def test_strengths_and_losses_are_those_of_the_population():
    task = SHARED
    network = MLP([task.input_dimension, 8, 1], seed=4)
    inputs, targets, skill, weights = task.population()
    outputs = np.asarray(jit(lambda inputs: network(inputs))(inputs))
    found, population_loss = jit(lambda: (task.skill_strength(network), task.population_loss(network)))()
    for k in range(task.skills):
        of_skill = skill == k
        signs = targets[of_skill] / task.target_scale
        np.testing.assert_allclose(found.strength[k], np.mean(signs * outputs[of_skill]), atol=1e-13)
        np.testing.assert_allclose(found.skill_loss[k], np.mean((outputs - targets)[of_skill] ** 2) / 2, rtol=1e-12)
    loss = weights @ (outputs - targets)[:, 0] ** 2 / 2
    np.testing.assert_allclose([found.loss, population_loss], loss, rtol=1e-12)
    np.testing.assert_array_equal(found.standard_error, 0)


def test_a_function_of_parities_has_the_strengths_it_is_made_of():
    made_of = jnp.array([5.0, 2.0, -1.0])

    def function(inputs):
        bits = inputs[:, 3:].reshape(len(inputs), 3, 3).sum(axis=2)
        return inputs[:, :3] * (1 - 2 * (bits % 2)) @ made_of

    found = SMALL.skill_strength(function)
    np.testing.assert_allclose(found.strength, made_of, atol=1e-14)
    # Only here, where f is proportional to g_k, is the loss ½ (S − R)².
    np.testing.assert_allclose(found.skill_loss, (5 - made_of) ** 2 / 2, atol=1e-13)


@pytest.mark.slow
def test_sampled_strengths_are_within_their_standard_errors():
    network = MLP([12, 8, 1], seed=4)
    sampled = jax.vmap(lambda key: SMALL.skill_strength(network, key=key, samples=100))
    both = jit(lambda key: (SMALL.skill_strength(network), sampled(jax.random.split(key, 200))))
    exact, drawn = jax.device_get(both(jax.random.key(7)))
    deviations = (drawn.strength - exact.strength) / drawn.standard_error
    # 600 standard normal numbers, up to the 1 % by which a variance from 100 samples is off: five standard errors.
    assert abs(float(deviations.mean())) < 0.2
    assert abs(float(deviations.std()) - 1) < 0.15
    np.testing.assert_allclose(drawn.loss.mean(), exact.loss, rtol=0.05)


@pytest.mark.slow
def test_the_expectation_can_be_differentiated():
    task = SMALL.expectation()
    weights = np.random.default_rng(0).normal(size=12)
    loss, gradient = jit(jax.value_and_grad(lambda weights: task.loss(lambda inputs: inputs @ weights)))(weights)
    inputs, targets, _, probabilities = SMALL.population()
    residual = inputs @ weights - targets[:, 0]
    np.testing.assert_allclose(loss, probabilities @ residual**2 / 2, rtol=1e-12)
    np.testing.assert_allclose(gradient, (probabilities * residual) @ inputs, rtol=1e-11)
    assert task.attributes()["task"] == "sparse parity"


@pytest.mark.slow
def test_a_training_set_is_the_same_for_the_same_seed():
    first, again, other = (SMALL.task(40, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.inputs, again.inputs)
    assert np.any(first.inputs != other.inputs)
    np.testing.assert_array_equal(first.targets, parity_of(SMALL, first.inputs, first.inputs[:, :3].argmax(axis=1)))


def test_random_subsets_are_sets_of_bits_drawn_by_the_seed():
    assert all(len(set(row)) == 3 for row in SHARED.relevant.tolist())
    other = SparseParity(skills=4, bits=7, subsets="random", seed=6)
    assert np.any(SHARED.relevant != other.relevant)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"skills": 0}, "skills"),
        ({"bits": 14}, "bits"),
        ({"bits": 2, "subsets": "random"}, "relevant_bits"),
        ({"exponent": 0.0}, "exponent"),
        ({"target_scale": -1.0}, "target_scale"),
        ({"target_scale": np.nan}, "target_scale"),
        ({"seed": -1}, "seed"),
    ],
)
def test_a_bad_setting_is_named(changes, argument):
    with pytest.raises(InputError) as caught:
        SparseParity(**changes)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: SparseParity().population(), "bits"),
        (lambda: SparseParity().expectation(), "bits"),
        (lambda: SparseParity().skill_strength(lambda x: x[:, 0]), "bits"),
        (lambda: SparseParity(skills=2000, bits=16, subsets="random").population(), "skills"),
        (lambda: SMALL.skill_strength(lambda x: x), "function"),
        (lambda: SMALL.skill_strength(lambda x: x[:, 0], key=jax.random.key(0), samples=1), "samples"),
        (lambda: SMALL.sample(jax.random.key(0), 0), "samples"),
        (lambda: SMALL.sample(jax.random.key(0), 4, skill=3), "skill"),
        (lambda: skill_frequencies(3, np.inf), "exponent"),
    ],
)
def test_a_bad_call_is_named(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
