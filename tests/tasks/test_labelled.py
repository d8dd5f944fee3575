import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.tasks import Labelled, Task

DRAW = np.random.default_rng(0)
INPUTS = DRAW.normal(size=(12, 3, 2))
LABELS = np.arange(12) % 3
NAMES = ("a", "b", "c")


@pytest.fixture
def data():
    return Labelled(INPUTS, LABELS, NAMES, "letters", ("Read.",))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int32, np.int64])
def test_inputs_are_kept_as_they_are(dtype):
    inputs = (10 + 9 * INPUTS).astype(dtype)
    data = Labelled(inputs, LABELS)
    assert data.inputs is inputs
    assert data.inputs.dtype == dtype


def test_it_says_its_sizes_and_names(data):
    assert (data.samples, data.input_dimension, data.output_dimension) == (12, 6, 3)
    assert data.target_names == data.class_names == NAMES
    assert data.attributes() == {
        "task": "letters",
        "description": ["Read."],
        "samples": 12,
        "input_dimension": 6,
        "output_dimension": 3,
        "classes": ["a", "b", "c"],
        "data_hash": "f3a9637021cd",
    }


def test_classes_without_names_are_counted_up_to_the_largest_label():
    assert Labelled(INPUTS[:3], np.array([2, 0, 2])).class_names == ("class 0", "class 1", "class 2")
    # A class may have no sample, if it has a name.
    assert Labelled(INPUTS[:2], np.array([0, 0]), NAMES).output_dimension == 3


def test_one_row_of_the_unit_matrix_is_the_target_of_a_sample(data):
    np.testing.assert_array_equal(data.one_hot(), np.eye(3)[LABELS])
    assert data.one_hot().dtype == np.float64
    assert data.one_hot(np.float32).dtype == np.float32


def test_labels_at_every_position_have_one_hot_rows_and_a_mean_loss():
    tokens = DRAW.integers(3, size=(6, 5))
    data = Labelled(tokens[:, :-1], tokens[:, 1:])
    outputs = DRAW.normal(size=(6, 4, 3))
    rows = np.eye(3)[tokens[:, 1:]]
    np.testing.assert_array_equal(data.one_hot(), rows)
    expected = ((outputs - rows) ** 2).sum(axis=-1).mean() / 2
    assert data.loss(lambda x: outputs) == pytest.approx(expected, rel=1e-14)
    train, test = data.split(test_fraction=1 / 3)
    assert (train.labels.shape, test.labels.shape) == ((4, 4), (2, 4))
    with pytest.raises(InputError, match="outputs have shape"):
        data.loss(lambda x: outputs[:, 0])
    with pytest.raises(InputError, match="one label per sample") as error:
        data.task()
    assert error.value.argument == "labels"


@given(st.integers(0, 2**32 - 1))
def test_the_loss_is_the_mean_of_half_the_squared_distance(seed):
    weights = np.random.default_rng(seed).normal(size=(6, 3))
    data = Labelled(INPUTS, LABELS)

    def network(x):
        return x.reshape(len(x), -1) @ weights

    pairs = zip(INPUTS, LABELS, strict=True)
    expected = np.mean([0.5 * np.sum((network(x[None])[0] - np.eye(3)[y]) ** 2) for x, y in pairs])
    assert data.loss(network) == pytest.approx(expected, rel=1e-12)
    assert data.task().loss(network) == pytest.approx(expected, rel=1e-12)


def test_the_loss_is_traced_in_the_precision_of_the_network(data):
    def loss(weights):
        return data.loss(lambda x: jnp.asarray(x, weights.dtype).reshape(len(x), -1) @ weights)

    weights = DRAW.normal(size=(6, 3))
    flat, residual = INPUTS.reshape(12, -1), INPUTS.reshape(12, -1) @ weights - np.eye(3)[LABELS]
    with jax.enable_x64(True):
        slope = jit(jax.grad(loss))(weights)
        assert jax.eval_shape(loss, jnp.asarray(weights, jnp.float32)).dtype == jnp.float32
    np.testing.assert_allclose(slope, flat.T @ residual / 12, rtol=1e-11, atol=1e-13)


def test_tokens_reach_the_network_as_whole_numbers():
    tokens = np.array([[0, 2], [1, 1], [2, 0]])
    table = DRAW.normal(size=(3, 2))
    loss = Labelled(tokens, np.array([0, 1, 1])).loss(lambda x: table[x].sum(axis=1))
    outputs = np.array([table[0] + table[2], 2 * table[1], table[2] + table[0]])
    assert loss == pytest.approx(((outputs - np.eye(2)[[0, 1, 1]]) ** 2).sum() / 6, rel=1e-12)


def test_outputs_of_another_shape_are_refused_and_not_spread(data):
    with pytest.raises(InputError, match=r"outputs have shape \(12, 1\)") as error:
        data.loss(lambda x: np.zeros((len(x), 1)))
    assert error.value.argument == "network"


def test_its_parts_are_those_of_the_task_with_the_same_classes(data):
    for part, other in zip(
        data.split(test_fraction=0.5, seed=3), data.task().split(test_fraction=0.5, seed=3), strict=True
    ):
        np.testing.assert_array_equal(part.inputs.reshape(6, -1), other.inputs)
        np.testing.assert_array_equal(part.one_hot(), other.targets)
        assert (part.name, part.description, part.class_names) == ("letters", ("Read.",), NAMES)
    with pytest.raises(InputError) as error:
        data.split(test_fraction=0.05)
    assert error.value.argument == "test_fraction"


def test_a_part_without_the_last_class_still_has_it():
    data = Labelled(INPUTS, np.array([2, *[0, 1] * 5, 0]))
    assert {part.output_dimension for seed in range(4) for part in data.split(seed=seed)} == {3}


def test_its_task_is_flat_and_one_hot(data):
    task = data.task()
    assert isinstance(task, Task)
    np.testing.assert_array_equal(task.inputs, INPUTS.reshape(12, 6))
    np.testing.assert_array_equal(task.targets, np.eye(3)[LABELS])
    assert (task.name, task.target_names) == ("letters", NAMES)
    assert (task.description[0], "3 classes" in task.description[1]) == ("Read.", True)


def test_it_cannot_be_changed_and_is_equal_only_to_itself(data):
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    assert data == data
    assert data != Labelled(INPUTS, LABELS, NAMES, "letters", ("Read.",))
    assert len({data, data}) == 1


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fields", "argument", "problem"),
    [
        ({"inputs": INPUTS[:5]}, "labels", r"labels has shape \(12,\), but there are 5 samples"),
        ({"labels": LABELS[:, None]}, "labels", r"labels has shape \(12, 1\)"),
        ({"labels": LABELS / 2}, "labels", "labels has values of type float64"),
        ({"labels": LABELS - 1}, "labels", "labels ranges from -1 to [0-9]+"),
        ({"labels": LABELS + 1}, "labels", "labels contains 3, but only 3 classes have a name"),
        ({"labels": np.zeros(12, int), "class_names": ()}, "class_names", "labels contains only one class"),
        ({"class_names": ("a",)}, "class_names", "labels contains only one class"),
        ({"class_names": "abc"}, "class_names", "class_names is 'abc': give a list"),
        ({"class_names": (1, 2, 3)}, "class_names", "in which each element is text"),
        ({"inputs": INPUTS[:1], "labels": LABELS[:1]}, "inputs", "at least two non-empty samples"),
        ({"inputs": INPUTS[:, :0]}, "inputs", "non-empty samples"),
        ({"inputs": 1.0}, "inputs", r"inputs has shape \(\)"),
        ({"inputs": [[1], [2, 3]]}, "inputs", "give an array of numbers"),
        ({"inputs": INPUTS.astype(np.float16)}, "inputs", "inputs has values of type float16"),
        ({"inputs": INPUTS + 1j}, "inputs", "inputs has values of type complex128"),
        ({"inputs": np.where(INPUTS > 1, np.nan, INPUTS)}, "inputs", "values that are not finite"),
        ({"inputs": np.where(INPUTS > 1, -np.inf, INPUTS)}, "inputs", "values that are not finite"),
    ],
)
def test_bad_parts_are_named(fields, argument, problem):
    with pytest.raises(InputError, match=problem) as error:
        Labelled(**{"inputs": INPUTS, "labels": LABELS, "class_names": NAMES, **fields})
    assert error.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
def test_traced_inputs_are_refused():
    with pytest.raises(InputError, match="inputs is traced by JAX"):
        jax.eval_shape(lambda x: Labelled(x, LABELS), INPUTS)
