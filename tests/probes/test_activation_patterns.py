from __future__ import annotations

import functools
import operator

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.probes.activation_patterns import (
    activity,
    count_active,
    count_flips,
    hamming_distance,
)
from dynascope.results import variables_of


def draw(seed=0, samples=12, times=()):
    random = np.random.default_rng(seed)
    return [random.standard_normal((*times, samples, width)) for width in (5, 9)]


def everything(before, after):
    return {**variables_of(hamming_distance(count_flips(before, after))), **variables_of(activity(count_active(after)))}


def test_the_distance_is_the_fraction_of_flipped_pairs():
    before, after = draw(0), draw(1)
    found = hamming_distance(count_flips(before, after))._asdict()
    flips = [(b > 0) ^ (a > 0) for b, a in zip(before, after, strict=True)]
    assert found["hamming_distance"] == pytest.approx(np.concatenate(flips, 1).mean(), rel=1e-14)
    np.testing.assert_allclose(found["layer_hamming_distance"], [f.mean() for f in flips], rtol=1e-14)
    np.testing.assert_allclose(found["neuron_hamming_distance"], np.concatenate(flips, 1).mean(0), rtol=1e-14)


def test_the_golden_run_of_an_unbalanced_student_flips_one_pair_in_sixteen():
    def sines(shape, a):
        return np.sin(a * (1 + np.arange(np.prod(shape)))).reshape(shape)

    def rows(matrix):
        return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)

    # interventions, section 4.1
    size, imbalance = 0.2, 0.3
    ratio = imbalance / (2 * size**2)
    alpha = (1 / (np.sqrt(1 + ratio**2) + ratio)) ** 0.5
    inner = size * alpha * np.tile(rows(sines((2, 3), 1.0)), (2, 1))
    outer = size / alpha * np.array([1.0, -1.0, -1.0, 1.0])
    inputs, teacher = rows(sines((4, 3), 0.5)), rows(sines((2, 3), 2.2))
    targets = np.maximum(inputs @ teacher.T, 0) @ np.array([1.0, -1.0])
    start = inputs @ inner.T
    for _ in range(1000):
        before = inputs @ inner.T
        residual = np.maximum(before, 0) @ outer - targets
        slope = 2 / 4 * (residual[:, None] * (before > 0) * outer).T @ inputs
        outer = outer - 0.1 * 2 / 4 * np.maximum(before, 0).T @ residual
        inner = inner - 0.1 * slope
    np.testing.assert_allclose(outer[0], 0.6067796007031123, rtol=1e-10)
    assert hamming_distance(count_flips(start, inputs @ inner.T)).hamming_distance == 0.0625


def test_a_neuron_at_zero_is_inactive():
    z = np.array([[0.0, -0.0, 1e-300, -1e-300]])
    np.testing.assert_array_equal(count_active(z).layers[0], [0, 0, 1, 0])
    np.testing.assert_array_equal(count_flips(np.ones((1, 4)), z).layers[0], [1, 1, 0, 1])


def test_dead_and_always_active_neurons_are_told():
    z = np.array([[-1.0, 1.0, 1.0], [-2.0, 0.5, -1.0], [0.0, 3.0, 1.0]])
    found = activity(count_active([z, z[:, :2]]))
    np.testing.assert_allclose(found.active_fraction, [0, 1, 2 / 3, 0, 1])
    np.testing.assert_allclose(found.dead_fraction, [1 / 3, 1 / 2])
    np.testing.assert_allclose(found.always_on_fraction, [1 / 3, 1 / 2])


def test_a_neuron_that_wakes_in_a_later_batch_is_not_dead():
    batches = [np.array([[-1.0, -1.0]]), np.array([[1.0, -1.0], [1.0, -1.0]])]
    both = functools.reduce(operator.add, map(count_active, batches))
    assert activity(count_active(batches[0])).dead_fraction == 1
    assert activity(both).dead_fraction == 0.5


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1000), cut=st.integers(1, 11), factor=st.floats(-100, 100))
def test_batches_and_positive_factors_change_nothing(seed, cut, factor):
    before, after = draw(seed), draw(seed + 1)
    parts = [([b[s] for b in before], [10**factor * a[s] for a in after]) for s in (slice(cut), slice(cut, None))]
    flips = functools.reduce(operator.add, (count_flips(*part) for part in parts))
    active = functools.reduce(operator.add, (count_active(part[1]) for part in parts))
    found = {**hamming_distance(flips)._asdict(), **activity(active)._asdict()}
    for name, (_, values) in everything(before, after).items():
        np.testing.assert_array_equal(found[name], values)


@settings(max_examples=12, deadline=None)
@given(seeds=st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)))
def test_it_is_a_distance(seeds):
    def distance(one, other):
        return float(hamming_distance(count_flips(draw(one), draw(other))).hamming_distance)

    a, b, c = seeds
    assert distance(a, a) == 0
    assert distance(a, b) == distance(b, a)
    assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-15


def test_times_are_measured_one_by_one():
    before, after = draw(0), draw(1, times=(4,))
    along = everything(before, after)
    for t in range(4):
        for name, (dimensions, values) in everything(before, [each[t] for each in after]).items():
            assert along[name][0] == ("time", *dimensions)
            np.testing.assert_array_equal(along[name][1][t], values)


@pytest.mark.slow
@pytest.mark.parametrize("library", [pytest.param("jax", marks=pytest.mark.slow), "traced", "torch"])
def test_every_library_gives_the_numbers_of_numpy(library):
    arrays = [*draw(0), *draw(1)]

    def measured(*arrays):
        return {name: values for name, (_, values) in everything(list(arrays[:2]), list(arrays[2:])).items()}

    if library == "torch":
        torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
        pytest.importorskip("array_api_compat", reason="array-api-compat comes with the torch extra")
        tensors = [torch.from_numpy(each).requires_grad_() for each in arrays]
        found = measured(*tensors)
        assert all(isinstance(values, torch.Tensor) for values in found.values())
    else:
        with jax.enable_x64(True):
            found = (jit(measured) if library == "traced" else measured)(*map(jax.device_put, arrays))
            assert all(isinstance(values, jax.Array) for values in found.values())
    for name, values in measured(*arrays).items():
        np.testing.assert_allclose(np.asarray(found[name]), values, rtol=1e-14, err_msg=name)


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda: count_flips(np.ones((2, 3)), np.ones((3, 3))), "shapes"),
        (lambda: count_flips(np.ones((2, 3)), [np.ones((2, 3))] * 2), "shapes"),
        (lambda: count_active([]), "no layer"),
        (lambda: count_active(np.ones(3)), "layers of shapes"),
        (lambda: count_active([np.ones((2, 3)), np.ones((4, 3))]), "layers of shapes"),
        (lambda: count_active(np.full((2, 3), np.nan)), "not finite"),
        (lambda: count_active(np.ones((2, 3)) > 0), "of type bool"),
        (lambda: hamming_distance(count_active(np.ones((2, 3)))), "event 'active'"),
        (lambda: activity(count_flips(np.ones((2, 3)), np.ones((2, 3)))), "event 'flip'"),
        (lambda: count_active(np.ones((2, 3))) + count_active(np.ones((2, 4))), "cannot be added"),
    ],
)
def test_what_makes_no_sense_is_refused(measure, message):
    with pytest.raises(InputError, match=message):
        measure()
