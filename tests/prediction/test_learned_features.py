from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_iris

from dynascope import predict
from dynascope.networks import NeuronSum, TwoLayer
from dynascope.prediction.learned_features import Side, direction_words, output_words, with_words
from dynascope.results import make_record
from dynascope.tasks import InContextRegression, Task, digits

INPUTS = ("age", "size", "rent")
CLASSES = ("oak", "elm", "ash", "fir", "yew", "box")
E1 = np.array([1.0, 0.0, 0.0])


def told(output, direction=E1, *, labels=CLASSES, means=None, side=Side.BOTH, inputs=INPUTS):
    return output_words(np.array(output, float), labels, np.array(direction, float), inputs, means=means, side=side)


@pytest.fixture(scope="module")
def iris():
    x, labels = load_iris(return_X_y=True)
    names = ("sepal length", "sepal width", "petal length", "petal width")
    flowers = ("setosa", "versicolor", "virginica")
    return Task(x, np.eye(3)[labels], name="iris", feature_names=names, target_names=flowers).centred()


@pytest.mark.parametrize(
    ("direction", "words"),
    [
        ([0.8, -0.6, 0.0], "0.8 age − 0.6 size"),
        ([-0.6, 0.0, 0.8], "0.8 rent − 0.6 age"),
        ([0.05, 0.05, -0.99], "−rent"),
        ([0.15, 0.05, -0.98], "−1.0 rent + …"),
        ([0.0, 0.28, 0.96], "1.0 rent + …"),
        ([0.6, 0.6, 0.53], "0.6 age + 0.6 size + 0.5 rent"),
    ],
)
def test_a_direction_is_the_sum_of_its_largest_parts(direction, words):
    assert direction_words(np.array(direction), INPUTS) == words


def test_of_many_inputs_a_few_are_named_and_the_rest_is_owned_up_to():
    assert direction_words(np.full(25, 0.2), [f"x{i}" for i in range(25)]) == "0.2 x0 + 0.2 x1 + 0.2 x2 + …"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ([0.7, -0.7, 0.0, 0.0, 0.0, 0.0], "separates oak from elm by age"),
        ([0.5, -0.7, 0.5, 0.1, 0.0, -0.2], "separates oak and ash from elm by age"),
        ([0.9, -0.2, -0.2, -0.2, -0.15, -0.15], "separates oak from the rest by age"),
        ([0.4, 0.4, 0.4, 0.4, 0.4, 0.4], "common to all classes by age"),
    ],
)
def test_classes_are_told_apart_by_their_outputs(output, words):
    assert told(output, means=np.array(output)) == words


def test_where_the_data_do_not_tell_the_classes_apart_no_separation_is_claimed():
    assert told([0.7, -0.7, 0, 0, 0, 0], means=np.zeros(6)) == "raises oak over elm by age"


def test_a_class_alone_stands_against_the_rest():
    alone = {"labels": ("oak",), "side": Side.HIGH}
    assert told([1.0], means=np.array([0.3]), **alone) == "separates oak from the rest where age is high"
    assert told([-1.0], means=np.array([-0.3]), **alone) == "separates the rest from oak where age is high"
    assert told([-1.0], means=np.array([0.3]), **alone) == "raises the rest over oak where age is high"


@pytest.mark.parametrize(
    ("output", "direction", "side", "words"),
    [
        (1.0, [1, 0, 0], Side.HIGH, "raises price where age is high"),
        (-1.0, [-1, 0, 0], Side.HIGH, "lowers price where age is low"),
        (1.0, [-0.8, 0.6, 0], Side.HIGH, "raises price where 0.8 age − 0.6 size is low"),
        (-1.0, [-0.6, -0.8, 0], Side.HIGH, "lowers price where 0.8 size + 0.6 age is low"),
        (-1.0, [0.2, 0, -0.98], Side.HIGH, "lowers price where 1.0 rent + … is low"),
        (-1.0, [-0.8, 0.6, 0], Side.FAR, "lowers price where 0.8 age − 0.6 size is far from its mean"),
        (1.0, [-0.8, 0.6, 0], Side.BOTH, "direction −0.8 age + 0.6 size"),
    ],
)
def test_of_a_quantity_it_says_where_a_neuron_moves_it_and_which_way(output, direction, side, words):
    assert told([output], direction, labels=("price",), side=side) == words


def test_several_quantities_are_named():
    assert told([0.6, -0.8], labels=("price", "yield")) == "direction age, for −0.8 yield + 0.6 price"


def test_images_have_a_pattern_to_see_and_no_list_of_pixels():
    assert told([0.7, -0.7, 0, 0, 0, 0], means=np.arange(6.0)[::-1], inputs=()) == "separates oak from elm"
    assert told([1.0], labels=("price",), inputs=()) == "a pattern"


@pytest.mark.parametrize("units", [1.0, np.array([1e-3, 1.0, 1e4, 1.0])])
def test_the_classes_of_iris_are_told_apart_as_it_says_in_any_units(iris, units):
    task = dataclasses.replace(iris, inputs=iris.inputs * units)
    record = predict(task, "linear", scale=1e-8).record
    first, second = map(str, record["learned"].to_numpy())
    assert first.startswith("separates setosa from virginica by petal length")
    assert second.startswith("separates versicolor from virginica by ")
    answers = task.inputs @ record["main_map"].to_numpy().T
    means = np.abs(task.targets.T > 0) @ answers / 50
    signs = np.sign(record["output_feature"].to_numpy()[[0, 1], [0, 1]])
    assert means[0, 0] * signs[0] > means[1, 0] * signs[0] > means[2, 0] * signs[0]
    assert np.argmax(means[:, 1] * signs[1]) == 1
    assert np.argmin(means[:, 1] * signs[1]) == 2


def test_the_main_part_of_a_map_leaves_out_what_comes_late_and_does_little():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(200, 1)) + [0.0, 1e-3] * draw.normal(size=(200, 2))
    # The two inputs are nearly the same, so that their difference has a large weight and hardly any effect.
    task = Task(x, x[:, :1] + 40 * (x[:, 1:] - x[:, :1]), feature_names=("a", "b"), target_names=("y",)).centred()
    record = predict(task, "linear", scale=1e-8).record
    assert record["learned"].to_numpy().tolist() == ["direction 0.7 b + 0.7 a"]
    np.testing.assert_allclose(record["learned_map"], [[-39.0, 40.0]], rtol=1e-6)


def test_digits_are_named_and_their_pixels_are_not():
    words = predict(digits(), "linear", scale=1e-8)["learned"].to_numpy().tolist()
    assert words[0] == "separates digit 4 from digit 3 and digit 2"
    assert len(set(words)) == 9
    assert all(each.startswith("separates digit ") and "pixel" not in each for each in words)


@pytest.mark.slow
def test_what_attention_learns_is_a_direction_of_the_inputs():
    task = InContextRegression(np.diag([4.0, 1.0]), 20, feature_names=("age", "size"))
    words = predict(task, "attention", scale=1e-3)["learned"].to_numpy().tolist()
    assert [each.rpartition(": ")[2] for each in words] == ["age", "size"]


def test_neurons_are_counted_and_their_numbers_are_left_to_the_record():
    draw = np.random.default_rng(0)
    task = Task(draw.normal(size=(50, 3)), draw.normal(size=(50, 1)), feature_names=INPUTS, target_names=("price",))
    columns = {
        "jump_time": [1.0, 2.0, 3.0],
        "loss_before": [4.0, 3.0, 2.0],
        "loss_after": [3.0, 2.0, 1.0],
        "learned": np.array(["neuron 3", "neurons 1, 2, 4", "active neurons move on; 3 dormant again"]),
    }
    record = make_record(
        {
            **{name: (["jump"], values) for name, values in columns.items()},
            "input_feature": (["jump", "feature"], [[1.0, 0, 0], [0, -1.0, 0], [0, 0, 0]]),
            "output_feature": (["jump", "target"], [[1.0], [-1.0], [0.0]]),
            "activated": (["jump", "neuron"], [[True, False, False], [True, True, True], [False] * 3]),
            "returned": (["jump", "neuron"], [[False] * 3, [False, True, False], [True, False, False]]),
        },
        {"jump": [1, 2, 3], "feature": list(INPUTS), "target": ["price"], "neuron": [0, 1, 2]},
    )
    said = with_words(record, task, TwoLayer(3, 3, 1, activation="relu"))
    assert said["learned"].to_numpy().tolist() == [
        "raises price where age is high",
        "lowers price where size is low; and 2 more neurons; 1 neuron dormant again",
        "active neurons move on; 3 dormant again",
    ]
    assert said["learned"].attrs == record["learned"].attrs


def test_the_effect_of_a_neuron_is_its_slope_in_standard_deviations_of_the_inputs():
    x = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 1.0]
    task = Task(x, x[:, :1], feature_names=INPUTS, target_names=("price",))
    record = make_record(
        {
            "jump_time": (["jump"], [1.0, 2.0]),
            "loss_before": (["jump"], [3.0, 2.0]),
            "loss_after": (["jump"], [2.0, 1.0]),
            "learned": (["jump"], np.array(["neuron 0", "neuron 1"])),
            "settled_norm": (["jump"], [3.0, np.nan]),
            # The weights (0.36, 0.48, 0, −0.8) have unit norm, so the neuron is −2.4·max(1.08 x₀ + 1.44 x₁, 0).
            "input_feature": (["jump", "feature"], [[0.36, 0.48, 0.0], [0.6, 0.0, 0.0]]),
            "output_feature": (["jump", "target"], [[-0.8], [0.8]]),
            "activated": (["jump", "neuron"], np.eye(2, dtype=bool)),
            "returned": (["jump", "neuron"], np.zeros((2, 2), bool)),
        },
        {"jump": [1, 2], "feature": list(INPUTS), "target": ["price"], "neuron": [0, 1]},
    )
    effect = with_words(record, task, TwoLayer(3, 2, 1, activation="relu"))["output_effect"].to_numpy()[:, 0]
    assert effect[0] == pytest.approx(-2.4 * np.hypot(1.08 * x[:, 0].std(), 1.44 * x[:, 1].std()))
    assert np.isnan(effect[1])
    assert "output_effect" not in with_words(record, task, TwoLayer(3, 2, 1))


@pytest.mark.slow
def test_user_neurons_are_described_by_the_inputs_on_which_they_depend():
    x = np.random.default_rng(0).normal(size=(30, 3))
    task = Task(x, x[:, :2], feature_names=INPUTS, target_names=("price", "risk"))
    network = NeuronSum(np.ones((4, 2)), lambda w, x: w[0] * jnp.sin(w[1] * x[:, 1:]), degree=2)
    record = make_record(
        {
            "learned": (["jump"], ["neuron 3", "active neurons move on"]),
            "settled_direction": (["jump", "weight"], np.array([[0.8, 0.6], [0.0, 0.0]])),
            "activated": (["jump", "neuron"], np.array([[0, 0, 1, 1], [0, 0, 0, 0]])),
            "returned": (["jump", "neuron"], np.zeros((2, 4), dtype=int)),
        },
        {"jump": [1, 2], "weight": [0, 1], "neuron": np.arange(4)},
    )
    words = with_words(record, task, network)["learned"].to_numpy().tolist()
    assert words == ["changes price and risk based on size and rent; and 1 more neuron", "active neurons move on"]
