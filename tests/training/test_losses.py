import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import DeepLinear
from dynascope.tasks import Labelled, SparseParity, Task
from dynascope.training import Descent, descend
from dynascope.training.losses import Loss

draw = np.random.default_rng(0)
OUTPUTS, NUMBERS = draw.normal(size=(5, 3)), draw.normal(size=(5, 3))
LABELS = np.array([2, 0, 1, 2, 0])
ONE_HOT = np.eye(3)[LABELS]
SOFT = draw.dirichlet(np.ones(3), size=5)
SINGLE, SIGNS = draw.normal(size=(5, 1)), np.array([[1.0], [-1.0], [-1.0], [1.0], [1.0]])
BINARY = (SIGNS[:, 0] > 0).astype(int)
# The formulas are evaluated in another order.
ROUNDING = 1e-14
GROWING = {"exponential": np.exp, "logistic": lambda z: np.logaddexp(0, z)}


@functools.partial(jit, static_argnums=0)
def kernel(loss, outputs, targets):
    slopes = jax.grad(lambda outputs: loss.each(outputs, targets).sum())(outputs)
    return loss.each(outputs, targets), loss.right(outputs, targets), slopes


def evaluated(loss, outputs, targets):
    """Values, whether outputs are right, and the gradient with respect to outputs."""
    with jax.enable_x64(True):
        return [np.asarray(each) for each in kernel(loss, outputs, targets)]


def each(loss, outputs, targets):
    return evaluated(loss, outputs, targets)[0]


def softmax_loss(outputs, rows):
    return -np.sum(rows * np.log(np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)), axis=1)


@pytest.mark.parametrize(("targets", "rows"), [(NUMBERS, NUMBERS), (LABELS, ONE_HOT)])
def test_the_squared_loss_is_half_of_the_squared_distance(targets, rows):
    squares = (OUTPUTS - rows) ** 2 / 2
    assert each(Loss(), OUTPUTS, targets) == pytest.approx(squares.sum(axis=1), rel=ROUNDING)
    assert each(Loss(over_outputs="mean"), OUTPUTS, targets) == pytest.approx(squares.mean(axis=1), rel=ROUNDING)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize(("targets", "rows"), [(LABELS, ONE_HOT), (ONE_HOT, ONE_HOT), (SOFT, SOFT)])
def test_the_cross_entropy_is_that_of_smoothed_rows_of_probabilities(targets, rows, smoothing):
    expected = softmax_loss(OUTPUTS, (1 - smoothing) * rows + smoothing / 3)
    assert each(Loss("cross_entropy", smoothing), OUTPUTS, targets) == pytest.approx(expected, rel=ROUNDING)


def test_the_cross_entropy_is_a_single_value_for_all_outputs():
    summed, averaged = (each(Loss("cross_entropy", over_outputs=over), OUTPUTS, LABELS) for over in ("sum", "mean"))
    np.testing.assert_array_equal(averaged, summed)


@pytest.mark.parametrize("kind", GROWING)
def test_the_margin_of_one_output_is_its_sign_times_that_of_the_target_or_of_the_label(kind):
    expected = GROWING[kind](-SIGNS * SINGLE)[:, 0]
    assert each(Loss(kind), SINGLE, SIGNS) == pytest.approx(expected, rel=ROUNDING)
    np.testing.assert_array_equal(each(Loss(kind), SINGLE, BINARY), each(Loss(kind), SINGLE, SIGNS))


@pytest.mark.parametrize("kind", GROWING)
@pytest.mark.parametrize("targets", [LABELS, ONE_HOT])
def test_the_margins_of_several_outputs_are_those_to_every_other_class(kind, targets):
    expected = [
        sum(GROWING[kind](row[k] - row[label]) for k in range(3) if k != label)
        for row, label in zip(OUTPUTS, LABELS, strict=True)
    ]
    assert each(Loss(kind), OUTPUTS, targets) == pytest.approx(expected, rel=ROUNDING)
    averaged = np.array(expected) / 2
    assert each(Loss(kind, over_outputs="mean"), OUTPUTS, targets) == pytest.approx(averaged, rel=ROUNDING)


def test_two_classes_have_the_cross_entropy_of_the_logistic_loss_of_their_difference():
    pair = OUTPUTS[:, :2]
    both = each(Loss("cross_entropy"), pair, BINARY), each(Loss("logistic"), pair[:, 1:] - pair[:, :1], SIGNS)
    assert both[0] == pytest.approx(both[1], rel=ROUNDING)


@pytest.mark.parametrize("targets", [LABELS, ONE_HOT])
def test_a_sample_is_right_where_the_output_of_its_class_is_the_largest(targets):
    right = evaluated(Loss("cross_entropy"), OUTPUTS, targets)[1]
    assert right.tolist() == [np.argmax(row) == label for row, label in zip(OUTPUTS, LABELS, strict=True)]
    assert 0 < right.sum() < 5


@pytest.mark.parametrize("targets", [SIGNS, BINARY])
def test_a_sample_of_one_output_is_right_where_it_has_the_sign_of_its_class(targets):
    outputs = np.array([[0.2], [0.1], [-3.0], [-0.1], [0.0]])
    # An output of zero has no sign.
    assert evaluated(Loss("logistic"), outputs, targets)[1].tolist() == [True, False, True, False, False]


# Multiples of 2⁻¹⁰ up to 10⁴, whose sums are not rounded.
SCORES = arrays(int, (5, 3), elements=st.integers(-(10**7), 10**7)).map(lambda whole: whole / 1024)
CLASSIFYING = [Loss("cross_entropy"), Loss("cross_entropy", 0.1), Loss("exponential"), Loss("logistic")]


@pytest.mark.parametrize("loss", CLASSIFYING)
@given(outputs=SCORES, shift=st.integers(-(10**4), 10**4))
def test_losses_of_classes_do_not_depend_on_what_all_outputs_have_in_common(loss, outputs, shift):
    plain = each(loss, outputs, LABELS)
    assert not np.isnan(plain).any()
    np.testing.assert_array_equal(each(loss, outputs + shift, LABELS), plain)


@pytest.mark.parametrize("loss", CLASSIFYING)
@given(outputs=SCORES)
def test_large_outputs_have_the_loss_of_the_formula_and_a_gradient(loss, outputs):
    gaps = outputs - np.take_along_axis(outputs, LABELS[:, None], axis=1)
    if loss.kind == "cross_entropy":
        rows = (1 - loss.label_smoothing) * ONE_HOT + loss.label_smoothing / 3
        expected = np.logaddexp.reduce(gaps, axis=1) - np.sum(rows * gaps, axis=1)
    else:
        with np.errstate(over="ignore"):
            expected = np.sum((1 - ONE_HOT) * GROWING[loss.kind](gaps), axis=1)
    values, _, slopes = evaluated(loss, outputs, LABELS)
    # Sums of outputs up to 1e4 are rounded at 1e-12, and the exponential of an argument below 710 at 1e-13 of it.
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-11)
    slopes = slopes[np.isfinite(values)]
    assert np.isfinite(slopes).all()
    # What is added to all outputs changes nothing, but for the rounding of slopes and of probabilities.
    assert np.all(np.abs(slopes.sum(axis=1)) <= 1e-15 * (1 + np.abs(slopes).sum(axis=1)))


SEQUENCES, SEQUENCE_LABELS = draw.normal(size=(4, 5, 3)), np.stack([LABELS, LABELS[::-1], 2 - LABELS, LABELS])


@pytest.mark.parametrize("over_outputs", ["sum", "mean"])
@pytest.mark.parametrize("kind", ["squared", "cross_entropy", "exponential", "logistic"])
def test_the_loss_of_a_sequence_is_the_mean_over_its_positions(kind, over_outputs):
    loss = Loss(kind, over_outputs=over_outputs)
    pairs = list(zip(SEQUENCES, SEQUENCE_LABELS, strict=True))
    values, right, _ = evaluated(loss, SEQUENCES, SEQUENCE_LABELS)
    np.testing.assert_allclose(values, [each(loss, *pair).mean() for pair in pairs], rtol=1e-14)
    np.testing.assert_array_equal(right, [evaluated(loss, *pair)[1] for pair in pairs])


@pytest.mark.parametrize("kind", ["exponential", "logistic"])
def test_the_loss_of_a_sequence_with_a_single_output_is_the_mean_over_its_positions(kind):
    values, right, _ = evaluated(Loss(kind), np.stack([SINGLE, -SINGLE]), np.stack([BINARY, BINARY]))
    parts = [evaluated(Loss(kind), sign * SINGLE, BINARY) for sign in (1, -1)]
    np.testing.assert_allclose(values, [part[0].mean() for part in parts], rtol=1e-14)
    np.testing.assert_array_equal(right, [part[1] for part in parts])


def test_labels_at_positions_are_rows_of_probabilities_at_positions():
    rows = np.eye(3)[SEQUENCE_LABELS]
    for loss in CLASSIFYING:
        np.testing.assert_array_equal(each(loss, SEQUENCES, rows), each(loss, SEQUENCES, SEQUENCE_LABELS))


def test_blocks_of_long_sequences_have_the_mean_of_all():
    """4096 positions are evaluated together: here 40 blocks, of which the last is not full."""
    inputs = draw.normal(size=(79, 2048, 2))
    labels = draw.integers(3, size=(79, 2048))

    class Linear(eqx.Module):
        weights: np.ndarray

        def __call__(self, x):
            return x @ self.weights

    weights = draw.normal(size=(2, 3))
    record = descend(Labelled(inputs, labels), Linear(weights), Descent(loss="cross_entropy", **ONCE))
    outputs = inputs @ weights
    losses = softmax_loss(outputs.reshape(-1, 3), np.eye(3)[labels.ravel()])
    assert float(record.loss[0]) == pytest.approx(losses.mean(), rel=1e-12)
    assert float(record.accuracy[0]) == pytest.approx(np.mean(outputs.argmax(axis=-1) == labels), rel=1e-12)


INPUTS = draw.normal(size=(5, 2))
NETWORK = DeepLinear((2, 3))
REGRESSION, CLASSES = Task(INPUTS, NUMBERS), Labelled(INPUTS, LABELS)
ONCE = {"steps": 1, "learning_rate": 0.1, "save": [0, 1]}


def absolute_errors(outputs, targets):
    return jnp.abs(outputs - targets)


def largest_error(outputs, targets):
    return jnp.abs(outputs - targets).max(axis=1)


@pytest.mark.parametrize(
    ("loss", "over_outputs"), [(absolute_errors, "sum"), (absolute_errors, "mean"), (largest_error, "sum")]
)
def test_a_user_function_has_values_of_samples_or_of_entries(loss, over_outputs):
    record, end = descend(
        REGRESSION, NETWORK, Descent(loss=Loss(loss, over_outputs=over_outputs), **ONCE), return_networks=True
    )
    errors = INPUTS @ NETWORK.weights[0] - NUMBERS
    size = np.abs(errors)
    if loss is largest_error:
        expected, slopes = size.max(axis=1).mean(), np.sign(errors) * (size == size.max(axis=1, keepdims=True))
    else:
        averaged = 3 if over_outputs == "mean" else 1
        expected, slopes = size.sum(axis=1).mean() / averaged, np.sign(errors) / averaged
    assert float(record["loss"][0]) == pytest.approx(expected, rel=ROUNDING)
    assert end.weights[0] == pytest.approx(NETWORK.weights[0] - 0.1 * INPUTS.T @ slopes / 5, abs=ROUNDING)
    assert record.attrs["loss_function"] == loss.__name__
    assert loss.__name__ in record.attrs["convention"]
    assert "accuracy" not in record


def hinge_of_one_output(outputs, labels):
    return jnp.maximum(0, 1 - (2 * labels - 1) * outputs[:, 0])


def test_a_user_function_may_compare_one_output_with_labels():
    network = DeepLinear((2, 1))
    record = descend(Labelled(INPUTS, BINARY), network, Descent(loss=hinge_of_one_output, **ONCE))
    outputs = INPUTS @ network.weights[0]
    assert float(record["loss"][0]) == pytest.approx(np.maximum(0, 1 - SIGNS * outputs).mean(), rel=ROUNDING)
    assert float(record["accuracy"][0]) == pytest.approx(np.mean(SIGNS * outputs > 0), rel=ROUNDING)


def test_records_say_what_the_loss_is():
    smoothed = Loss("cross_entropy", 0.1).convention
    assert "log softmax" in smoothed
    assert "0.1" in smoothed
    assert "over outputs" not in smoothed
    assert "mean over outputs" in Loss("logistic", over_outputs="mean").convention


def one_value(outputs, targets):
    return jnp.mean(outputs - targets)


def value_of_each_output(outputs, targets):
    return jnp.mean(outputs - targets, axis=0)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("options", "argument", "words"),
    [
        ({"loss": "hinge"}, "loss", "give 'squared'"),
        ({"loss": "cross_entropy"}, "task", "rows of probabilities"),
        ({"loss": "cross_entropy", "task": Task(INPUTS, 2 * SOFT)}, "task", "rows of probabilities"),
        ({"loss": "cross_entropy", "task": CLASSES, "test": REGRESSION}, "test", "rows of probabilities"),
        ({"loss": "cross_entropy", "network": DeepLinear((2, 2)), "task": CLASSES}, "network", "labels go up to 2"),
        ({"network": DeepLinear((2, 2)), "task": CLASSES}, "network", "labels go up to 2"),
        ({"loss": "logistic", "network": DeepLinear((2, 1)), "task": CLASSES}, "network", "labels go up to 2"),
        ({"network": DeepLinear((2, 1)), "task": Labelled(INPUTS, BINARY)}, "network", "one output for each class"),
        (
            {"loss": "cross_entropy", "network": DeepLinear((2, 1)), "task": Task(INPUTS, SIGNS**2)},
            "task",
            "one output",
        ),
        ({"loss": "exponential", "network": DeepLinear((2, 1)), "task": Task(INPUTS, SINGLE)}, "task", "−1 and 1"),
        ({"loss": "exponential", "task": Task(INPUTS, SOFT)}, "task", "one-hot rows"),
        ({"loss": "logistic", "task": Task(INPUTS, 1 - ONE_HOT)}, "task", "one-hot rows"),
        ({"loss": one_value}, "loss", "one value for each sample"),
        ({"loss": value_of_each_output}, "loss", "one value for each sample"),
        ({"network": DeepLinear((2, 2))}, "network", "outputs of shape"),
    ],
)
def test_what_does_not_fit_a_loss_is_refused_by_name(options, argument, words):
    parts = {"network": NETWORK, "task": REGRESSION, **options}
    network, task = parts.pop("network"), parts.pop("task")
    with pytest.raises(InputError, match=words) as caught:
        descend(task, network, Descent(**ONCE, **parts))
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("fields", "argument", "words"),
    [
        ({"over_outputs": "max"}, "over_outputs", "choose 'sum' or 'mean'"),
        ({"label_smoothing": 0.1}, "label_smoothing", 'use loss="cross_entropy"'),
        ({"kind": absolute_errors, "label_smoothing": 0.1}, "label_smoothing", 'use loss="cross_entropy"'),
        ({"kind": "cross_entropy", "label_smoothing": 1.0}, "label_smoothing", "1"),
        ({"kind": "cross_entropy", "label_smoothing": -0.1}, "label_smoothing", "-0.1"),
        ({"kind": "cross_entropy", "label_smoothing": np.nan}, "label_smoothing", "nan"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_fields_of_a_loss_outside_of_their_domain_are_named(fields, argument, words):
    with pytest.raises(InputError, match=words) as caught:
        Loss(**fields)
    assert caught.value.argument == argument


PARITY = SparseParity(skills=2, bits=4, relevant_bits=2)


@pytest.mark.parametrize("loss", ["logistic", absolute_errors, Loss(over_outputs="mean")])
def test_an_expectation_is_that_of_the_squared_loss(loss):
    with pytest.raises(InputError, match="whose expectation has a closed form") as caught:
        descend(PARITY.expectation(), DeepLinear((PARITY.input_dimension, 1)), Descent(loss=loss, **ONCE))
    assert caught.value.argument == "loss"
