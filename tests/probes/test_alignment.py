from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.probes.alignment import data_alignment, layer_alignment, layer_imbalance, line_alignment, weight_movement
from dynascope.results import variables_of
from dynascope.theory import LayerRates, line_inputs

SHAPES = ((4, 3), (3, 5), (5, 2))


def chain(seed=0, times=()):
    random = np.random.default_rng(seed)
    return [random.standard_normal((*times, *shape)) for shape in SHAPES]


def data(seed=7):
    random = np.random.default_rng(seed)
    return random.standard_normal((9, 4)), random.standard_normal((9, 2))


def rotation(seed, size):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]


def everything(weights, initial, inputs, targets, direction):
    along = variables_of(data_alignment(weights, inputs, targets, direction="data"))
    return {
        **variables_of(layer_alignment(weights)),
        **variables_of(data_alignment(weights, inputs, targets)),
        **{f"data_{k}": v for k, v in along.items()},
        **variables_of(line_alignment(weights[0], weights[1][..., 0], direction)),
        **variables_of(weight_movement(weights, initial)),
        **variables_of(layer_imbalance(weights)),
    }


def test_aligned_layers_have_cosine_one_and_turned_layers_the_cosine_of_the_angle():
    u, v, w = rotation(0, 4), rotation(1, 4), rotation(2, 4)
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]]
    sizes = np.diag([2.0, 1.0, 0.5, 0.1])
    first, second, third = u @ sizes @ v.T, -v @ sizes @ w.T, w @ turn @ sizes
    found = layer_alignment([first, second, third])
    np.testing.assert_allclose(found.layer_alignment, [1, np.cos(0.3)], rtol=1e-13)
    np.testing.assert_allclose(found.gap, [0.5, 0.5], rtol=1e-13)


def test_layers_without_a_unique_top_direction_have_no_gap():
    # The singular values of the identity are equal to rounding.
    assert abs(layer_alignment([np.eye(3), np.diag([3.0, 1.0, 1.0])]).gap[0]) < 1e-14


def test_a_layer_that_vanishes_is_aligned_with_nothing():
    found = layer_alignment([np.zeros((2, 2)), np.eye(2), np.ones((2, 1))])
    np.testing.assert_allclose(found.layer_alignment[0], 0)
    assert line_alignment(np.zeros((2, 3)), np.ones(3), np.array([1.0, 0.0])).alignment == 0
    assert layer_imbalance([np.zeros((2, 2)), np.zeros((2, 1))]).relative_imbalance == 0


def test_layers_grow_aligned_when_a_linear_network_learns_one_direction_from_a_small_start():
    random = np.random.default_rng(3)
    weights = [1e-3 * random.standard_normal(shape) for shape in ((3, 6), (6, 2))]
    inputs = rotation(4, 3) * 3**0.5
    targets = inputs @ np.outer([0.6, 0.0, 0.8], [2.0, 1.0])
    before = layer_alignment(weights).layer_alignment
    for _ in range(600):
        slope = inputs.T @ (inputs @ weights[0] @ weights[1] - targets) / 3
        weights = [weights[0] - 0.03 * slope @ weights[1].T, weights[1] - 0.03 * weights[0].T @ slope]
    assert before < 0.9
    # What the start holds beside the learned direction remains: 1e-3 of it, whose square turns the cosine.
    assert layer_alignment(weights).layer_alignment > 1 - 1e-5
    found = data_alignment(weights, inputs, targets)
    assert found.input_alignment > 1 - 1e-5
    assert found.target_alignment > 1 - 1e-5


@pytest.mark.parametrize("direction", ["correlation", "data"])
def test_the_alignment_with_data_is_the_cosine_with_their_strongest_direction(direction):
    weights, (inputs, targets) = chain(), data()
    found = data_alignment(weights, inputs, targets, direction=direction)
    if direction == "correlation":
        product = inputs.T @ targets
        moments = product @ product.T, product.T @ product
    else:
        moments = inputs.T @ inputs, targets.T @ targets
    e, o = (np.linalg.eigh(moment)[1][:, -1] for moment in moments)
    u = np.linalg.eigh(weights[0] @ weights[0].T)[1][:, -1]
    v = np.linalg.eigh(weights[-1].T @ weights[-1])[1][:, -1]
    np.testing.assert_allclose(found.input_alignment, abs(u @ e), rtol=1e-10)
    np.testing.assert_allclose(found.target_alignment, abs(v @ o), rtol=1e-10)


@pytest.mark.slow
def test_the_alignment_of_the_golden_run_on_a_line_is_measured():
    # exact linear networks, section 4: W acts as W x there.
    first = np.array([[0.3, 0.1], [-0.5, 0.2], [0.2, 0.4]]).T
    second, direction = np.array([0.4, -0.2, 0.1]), np.array([0.6, 0.8])
    times = np.array([0.0, 0.1, 0.3])
    network = line_inputs.LineNetwork(first, second, 1.5, LayerRates(2.0, 0.5))
    data = line_inputs.LineData(direction, 2.0, 0.6)
    with jax.enable_x64(True):
        run = line_inputs.line_trajectory(network, data, times, prefactor=1.0)
        predicted = line_inputs.layer_cosine(network, data, times, prefactor=1.0)
    measured = line_alignment(np.asarray(run.first), np.asarray(run.second), direction)
    dimensions, found = variables_of(measured)["alignment"]
    assert dimensions == ("time",)
    # The golden numbers have twelve digits.
    np.testing.assert_allclose(found, [0.724777109624, 0.852685199049, 0.910985086655], rtol=1e-11)
    np.testing.assert_allclose(found, predicted, rtol=1e-13)


def test_the_alignment_on_a_line_has_a_sign_and_no_size():
    random = np.random.default_rng(5)
    first, second, direction = random.standard_normal((3, 4)), random.standard_normal(4), random.standard_normal(3)
    found = line_alignment(first, second, direction).alignment
    expected = second @ (direction @ first) / np.linalg.norm(second) / np.linalg.norm(direction @ first)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    tiny = line_alignment(1e-200 * first, 1e-250 * second[:, None], 1e-200 * direction).alignment
    np.testing.assert_allclose(tiny, expected, rtol=1e-13)
    np.testing.assert_allclose(line_alignment(first, -second, direction).alignment, -expected, rtol=1e-14)
    parallel = line_alignment(first, 3 * direction @ first, direction).alignment
    assert 1 - 1e-15 <= parallel <= 1


def test_movement_is_that_of_the_flattened_weights():
    initial, now = chain(0), chain(1)
    found = weight_movement(now, initial)._asdict()
    changes = [np.linalg.norm(w - w0) / np.linalg.norm(w0) for w, w0 in zip(now, initial, strict=True)]
    cosines = [np.vdot(w, w0) / np.linalg.norm(w) / np.linalg.norm(w0) for w, w0 in zip(now, initial, strict=True)]
    flat, flat_start = (np.concatenate([w.ravel() for w in weights]) for weights in (now, initial))
    distance = np.linalg.norm(flat - flat_start)
    np.testing.assert_allclose(found["relative_change"], changes, rtol=1e-13)
    np.testing.assert_allclose(found["start_cosine"], cosines, atol=1e-14)
    np.testing.assert_allclose(found["parameter_distance"], distance, rtol=1e-13)
    np.testing.assert_allclose(found["relative_parameter_distance"], distance / np.linalg.norm(flat_start), rtol=1e-13)
    cosine = flat @ flat_start / np.linalg.norm(flat) / np.linalg.norm(flat_start)
    np.testing.assert_allclose(found["parameter_cosine"], cosine, atol=1e-14)


def test_biases_and_filters_move_too():
    random = np.random.default_rng(6)
    initial = [random.standard_normal(shape) for shape in ((3,), (2, 3), (2, 1, 3, 3))]
    found = weight_movement([np.stack([each, 3 * each, 0 * each]) for each in initial], initial)
    np.testing.assert_allclose(found.relative_change, np.outer([0, 2, 1], np.ones(3)), rtol=1e-14)
    np.testing.assert_allclose(found.start_cosine, np.outer([1, 1, 0], np.ones(3)), rtol=1e-14)
    assert variables_of(found)["relative_change"][0] == ("time", "layer")
    assert variables_of(found)["parameter_cosine"][0] == ("time",)


def test_growth_from_a_tiny_start_keeps_the_digits_of_the_cosine():
    start = np.array([[3e-200, 4e-200]])
    found = weight_movement([np.array([[1.0, 0.0]])], [start])
    np.testing.assert_allclose(found.start_cosine, [0.6], rtol=1e-14)
    np.testing.assert_allclose(found.relative_change, [2e199], rtol=1e-14)


def test_balanced_layers_have_no_imbalance_and_lambda_balanced_ones_are_even():
    w, sizes = rotation(8, 3), np.array([2.0, 1.0, 0.5])
    first = rotation(9, 3) @ np.diag(sizes) @ w.T
    second = w @ np.diag(np.sqrt(sizes**2 + 1.5)) @ rotation(10, 3)
    balanced = layer_imbalance([first, w @ np.diag(sizes)])
    np.testing.assert_allclose(balanced.imbalance, 0, atol=1e-14)
    found = layer_imbalance([first, second])
    np.testing.assert_allclose(found.balance, 1.5, rtol=1e-14)
    np.testing.assert_allclose(found.unevenness, 0, atol=1e-14)
    np.testing.assert_allclose(found.imbalance, 1.5 * 3**0.5, rtol=1e-14)


def test_imbalance_is_the_norm_of_the_difference_of_gram_matrices():
    weights = chain(2)
    differences = [a.T @ a - b @ b.T for a, b in itertools.pairwise(weights)]
    found = layer_imbalance(weights)._asdict()
    np.testing.assert_allclose(found["imbalance"], [np.linalg.norm(d) for d in differences], rtol=1e-13)
    np.testing.assert_allclose(found["balance"], [-np.trace(d) / len(d) for d in differences], rtol=1e-13)
    even = [np.linalg.norm(d - np.trace(d) / len(d) * np.eye(len(d))) for d in differences]
    np.testing.assert_allclose(found["unevenness"], even, rtol=1e-13)
    assert np.all((found["relative_imbalance"] > 0) & (found["relative_imbalance"] <= 1))


def test_the_imbalance_is_conserved_to_the_order_of_the_step():
    (inputs, targets), start = data(), [0.5 * w for w in chain(4)]

    def after(rate):
        a, b, c = start
        for _ in range(round(0.5 / rate)):
            slope = inputs.T @ (inputs @ a @ b @ c - targets) / len(inputs)
            a, b, c = a - rate * slope @ (b @ c).T, b - rate * a.T @ slope @ c.T, c - rate * (a @ b).T @ slope
        return layer_imbalance([a, b, c]).balance

    drifts = [np.abs(after(rate) - layer_imbalance(start).balance).max() for rate in (0.01, 0.005)]
    assert 0 < drifts[0] < 0.05
    # First order in the step: halving it halves the drift, up to the next order.
    np.testing.assert_allclose(drifts[0] / drifts[1], 2, rtol=0.05)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1000), factor=st.floats(-8, 8))
def test_cosines_do_not_depend_on_scale_nor_on_rotations_of_the_hidden_neurons(seed, factor):
    weights, (inputs, targets) = chain(seed), data()
    turns = [rotation(seed, 3), rotation(seed + 1, 5)]
    turned = [weights[0] @ turns[0], turns[0].T @ weights[1] @ turns[1], turns[1].T @ weights[2]]
    turned = [10**factor * w for w in turned]
    for one, other in (
        (layer_alignment(weights), layer_alignment(turned)),
        (data_alignment(weights, inputs, targets), data_alignment(turned, inputs, targets)),
    ):
        for name in {*one._fields} - {"gap"}:
            # Rounding turns top vectors by its size over the gap between the singular values.
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-9)
    one, other = layer_imbalance(weights), layer_imbalance(turned)
    np.testing.assert_allclose(one.relative_imbalance, other.relative_imbalance, rtol=1e-10)


def test_times_are_measured_one_by_one():
    initial, (inputs, targets), direction = chain(1), data(), np.array([1.0, -1.0, 0.5, 2.0])
    runs = chain(2, times=(4,))
    along = everything(runs, initial, inputs, targets, direction)
    for t in range(4):
        single = everything([w[t] for w in runs], initial, inputs, targets, direction)
        for name, (dimensions, values) in single.items():
            assert along[name][0] == ("time", *dimensions)
            np.testing.assert_allclose(along[name][1][t], values, rtol=1e-12, atol=1e-14, err_msg=name)


@pytest.mark.slow
# JAX is only asked compiled, as it would compile each operation by itself otherwise.
def test_the_movement_of_torch_parameters_needs_no_gradient():
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    pytest.importorskip("array_api_compat", reason="array-api-compat comes with the torch extra")
    layer = torch.nn.Linear(3, 2)
    initial = [each.detach().clone() + 1 for each in layer.parameters()]
    assert not any(each.requires_grad for each in weight_movement(list(layer.parameters()), initial))


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_every_library_gives_the_numbers_of_numpy(library):
    arrays = [*chain(2, times=(3,)), *chain(1), *data(), np.array([1.0, -1.0, 0.5, 2.0])]

    def measured(*arrays):
        found = everything(arrays[:3], arrays[3:6], *arrays[6:])
        return {name: values for name, (_, values) in found.items()}

    expected = measured(*arrays)
    if library == "torch":
        torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
        pytest.importorskip("array_api_compat", reason="array-api-compat comes with the torch extra")
        found = measured(*map(torch.from_numpy, arrays))
        assert all(isinstance(values, torch.Tensor) for values in found.values())
    else:
        with jax.enable_x64(True):
            found = jit(measured)(*map(jax.device_put, arrays))
        assert all(isinstance(values, jax.Array) for values in found.values())
    for name, values in expected.items():
        np.testing.assert_allclose(np.asarray(found[name]), values, rtol=1e-10, atol=1e-13, err_msg=name)


def test_single_precision_stays_single():
    weights = [w.astype(np.float32) for w in chain()]
    assert all(values.dtype == np.float32 for values in layer_alignment(weights))
    assert all(values.dtype == np.float32 for values in layer_imbalance(weights))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda: layer_alignment([np.eye(2)]), "weights has length 1"),
        (lambda: layer_imbalance([np.ones((2, 3)), np.ones((2, 3))]), "are not those of consecutive layers"),
        (lambda: layer_alignment([np.ones((4, 2, 2)), np.ones((2, 2))]), "are not those of consecutive layers"),
        (lambda: layer_alignment([np.eye(2), np.full((2, 1), np.nan)]), "not finite"),
        (lambda: layer_alignment([np.eye(2), np.eye(2, dtype=int)]), "of type int64"),
        (lambda: layer_alignment([np.eye(2), [[1.0], [2.0]]]), "type list"),
        (
            lambda: data_alignment([np.eye(2)], np.ones((3, 2)), np.ones((4, 2))),
            "inputs has length 3, but targets has length 4",
        ),
        (lambda: data_alignment([np.eye(2)], np.ones((3, 2)), np.ones((3, 1))), "the network has dimensions"),
        (lambda: data_alignment([np.eye(2)], np.ones((3, 2)), np.ones((3, 2)), direction="x"), "direction is 'x'"),
        (lambda: line_alignment(np.eye(2), np.ones(3), np.ones(2)), "do not fit together"),
        (lambda: line_alignment(np.ones(2), np.ones(2), np.ones(2)), "do not fit together"),
        (lambda: line_alignment(np.eye(2), np.ones(2), np.zeros(2)), "direction is zero"),
        (lambda: weight_movement([np.eye(2)], [np.zeros((2, 2))]), r"initial\[0\] is zero"),
        (lambda: weight_movement([np.eye(2)], [np.ones(3)]), r"weights\[0\] has shape"),
        (lambda: weight_movement([np.eye(2)], []), "weights has length 1, and initial has length 0"),
    ],
)
def test_what_makes_no_sense_is_refused(measure, message):
    with pytest.raises(InputError, match=message):
        measure()
