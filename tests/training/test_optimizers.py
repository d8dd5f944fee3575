import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dynascope.errors import InputError
from dynascope.networks import DeepLinear
from dynascope.tasks import Task
from dynascope.training import Batches, Descent, Sampled, descend
from dynascope.training.optimizers import annealed, decayed, falling

draw = np.random.default_rng(0)
TASK = Task(draw.normal(size=(12, 3)), draw.normal(size=(12, 2)))
NETWORK = DeepLinear((3, 2), seed=1)
START = NETWORK.weights[0]
STEPS = 12
OPTIONS = {"steps": STEPS, "save": range(STEPS + 1)}
# The arithmetic of a few steps on numbers of order one, in another order.
ROUNDING = 1e-13


def run(optimizer="sgd", learning_rate=None, **options):
    return descend(
        TASK, NETWORK, Descent(optimizer, learning_rate=learning_rate, **OPTIONS | options), return_networks=True
    )


def loss(weights, rows=slice(None)):
    return np.mean(np.sum((TASK.inputs[rows] @ weights - TASK.targets[rows]) ** 2, axis=1)) / 2


def gradient(weights, rows=slice(None)):
    inputs = TASK.inputs[rows]
    return inputs.T @ (inputs @ weights - TASK.targets[rows]) / len(inputs)


cosine = optax.cosine_decay_schedule(0.3, STEPS)
RATES = 0.15 * (1 + np.cos(np.pi * np.arange(STEPS) / STEPS))


def momentum_by_hand(weights, nesterov):
    velocity = np.zeros_like(weights)
    for _ in range(STEPS):
        slopes = gradient(weights)
        velocity = 0.9 * velocity + slopes
        weights = weights - 0.05 * (slopes + 0.9 * velocity if nesterov else velocity)
    return weights


def adam_by_hand(weights, decay):
    mean = square = np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        slopes = gradient(weights)
        mean, square = 0.9 * mean + 0.1 * slopes, 0.999 * square + 0.001 * slopes**2
        direction = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        weights = weights - 0.05 * (direction + decay * weights)
    return weights


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        (functools.partial(optax.sgd, momentum=0.9), momentum_by_hand(START, nesterov=False)),
        (functools.partial(optax.sgd, momentum=0.9, nesterov=True), momentum_by_hand(START, nesterov=True)),
        (optax.adam, adam_by_hand(START, decay=0.0)),
        (functools.partial(optax.adamw, weight_decay=0.1), adam_by_hand(START, decay=0.1)),
    ],
)
def test_optimizers_take_the_steps_of_their_formulas(optimizer, expected):
    record, end = run(optimizer, 0.05)
    assert end.weights[0] == pytest.approx(expected, abs=ROUNDING)
    assert record.attrs["optimizer"] == getattr(optimizer, "func", optimizer).__name__


def test_a_schedule_is_a_function_of_the_number_of_steps_before():
    record, end = run("sgd", cosine)
    weights = START
    for rate in RATES:
        weights = weights - rate * gradient(weights)
    assert end.weights[0] == pytest.approx(weights, abs=ROUNDING)
    assert record["applied_rate"].to_numpy() == pytest.approx([0, *RATES], abs=ROUNDING)
    assert record["time"].to_numpy() == pytest.approx(np.cumsum([0, *RATES]), abs=ROUNDING)
    assert record.attrs["learning_rate"] == "cosine_decay_schedule"


def test_a_transformation_brings_its_own_rate_and_time_counts_its_steps():
    record, end = run(optax.sgd(0.05, momentum=0.9))
    assert end.weights[0] == pytest.approx(momentum_by_hand(START, nesterov=False), abs=ROUNDING)
    assert record["time"].to_numpy() == pytest.approx(np.arange(STEPS + 1))
    assert "learning_rate" not in record.attrs


def test_layer_rates_multiply_the_steps_of_a_transformation():
    _, end = run(optax.adam(0.5), {"weights": 0.1})
    assert end.weights[0] == pytest.approx(adam_by_hand(START, decay=0.0), abs=ROUNDING)


injected = optax.inject_hyperparams(optax.sgd)


@pytest.mark.parametrize("options", [{"optimizer": injected(cosine)}, {"optimizer": injected, "learning_rate": cosine}])
def test_a_rate_that_the_optimizer_tells_is_the_applied_one(options):
    record, end = run(**options)
    _, expected = run("sgd", cosine)
    assert end.weights[0] == pytest.approx(expected.weights[0], abs=ROUNDING)
    assert record["applied_rate"].to_numpy() == pytest.approx([0, *RATES], abs=ROUNDING)
    assert record["time"].to_numpy() == pytest.approx(np.cumsum([0, *RATES]), abs=ROUNDING)


def accumulated(made):
    # Sums of gradients are in single precision by default, and outside of this context.
    with jax.enable_x64(True):
        return optax.MultiSteps(made, 3, accumulator_dtype=np.float64)


def accumulated_sgd(rate):
    return accumulated(optax.sgd(rate))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "rates"),
    [
        ({"optimizer": accumulated_sgd, "learning_rate": cosine}, RATES[:4]),
        ({"optimizer": accumulated(injected(cosine))}, RATES[:4]),
        ({"optimizer": accumulated(optax.sgd(cosine))}, np.ones(4)),
    ],
)
def test_steps_that_only_accumulate_apply_no_rate(options, rates):
    record, end = run(batches=4, statistics=SEEN, **options)
    weights, batches = START, record["inputs"].to_numpy().reshape(4, 12, 3)
    for rate, inputs in zip(RATES, batches, strict=False):
        # Each epoch of three batches sees all samples.
        assert sorted(inputs[:, 0]) == sorted(TASK.inputs[:, 0])
        weights = weights - rate * gradient(weights)
    assert end.weights[0] == pytest.approx(weights, abs=ROUNDING)
    expected = np.r_[0, np.kron(rates, [0, 0, 1])]
    assert record["applied_rate"].to_numpy() == pytest.approx(expected, abs=ROUNDING)
    assert record["time"].to_numpy() == pytest.approx(np.cumsum(expected), abs=ROUNDING)


class Told(NamedTuple):
    value: Any
    value_again: Any
    slopes_again: Any
    grad: Any
    parameters: Any


def _nothing_told(parameters):
    value = jnp.zeros((), parameters.weights[0].dtype)
    return Told(value, value, parameters, parameters, parameters)


def _what_is_told(updates, state, params=None, *, value, grad, value_fn, **_):
    again, slopes = jax.value_and_grad(value_fn)(params)
    return jax.tree.map(lambda each: -0.1 * each, updates), Told(value, again, slopes, grad, params)


TELLING = optax.GradientTransformationExtraArgs(_nothing_told, _what_is_told)
PLACES = ["feature", "target"]
SEEN = {"inputs": Sampled(lambda step: step.batch.inputs, range(STEPS), ["sample", "feature"])}
TOLD = SEEN | {
    "value": Sampled(lambda step: step.optimizer_state.value, range(STEPS)),
    "value_again": Sampled(lambda step: step.optimizer_state.value_again, range(STEPS)),
    "slopes_again": Sampled(lambda step: step.optimizer_state.slopes_again.weights[0], range(STEPS), PLACES),
    "grad": Sampled(lambda step: step.optimizer_state.grad.weights[0], range(STEPS), PLACES),
    "parameters": Sampled(lambda step: step.optimizer_state.parameters.weights[0], range(STEPS), PLACES),
}


@pytest.mark.slow
@pytest.mark.parametrize("micro_size", [None, 2])
def test_an_optimizer_is_given_the_loss_gradient_and_weights_of_the_batch(micro_size):
    record, end = run(TELLING, batches=Batches(4, micro_size=micro_size), statistics=TOLD)
    weights = START
    for step in range(STEPS):
        told = record.isel(sampled_step=step)
        rows = [int(np.flatnonzero(TASK.inputs[:, 0] == first)[0]) for first in told["inputs"].to_numpy()[:, 0]]
        assert len(set(rows)) == 4
        assert told["parameters"].to_numpy() == pytest.approx(weights, abs=ROUNDING)
        for name in ("value", "value_again"):
            assert float(told[name]) == pytest.approx(loss(weights, rows), rel=ROUNDING)
        for name in ("grad", "slopes_again"):
            assert told[name].to_numpy() == pytest.approx(gradient(weights, rows), abs=ROUNDING)
        weights = weights - 0.1 * gradient(weights, rows)
    assert end.weights[0] == pytest.approx(weights, abs=ROUNDING)


def test_the_polyak_step_is_the_loss_over_the_squared_gradient():
    record, end = run(optax.polyak_sgd(max_learning_rate=1e3, f_min=0.2))
    weights, losses = START, [loss(START)]
    for _ in range(STEPS):
        slopes = gradient(weights)
        weights = weights - (loss(weights) - 0.2) / np.sum(slopes**2) * slopes
        losses.append(loss(weights))
    # Steps that overshoot multiply rounding.
    assert record["loss"].to_numpy() == pytest.approx(losses, rel=1e-9)
    assert end.weights[0] == pytest.approx(weights, abs=1e-9)


LINE_SEARCH = {"rate": Sampled(lambda step: step.optimizer_state[-1].learning_rate, range(STEPS))}


@pytest.mark.slow
def test_line_searches_find_the_minimum_of_a_quadratic_loss_and_tell_their_rates():
    record, end = run(optax.lbfgs(), statistics=LINE_SEARCH)
    best = np.linalg.lstsq(TASK.inputs, TASK.targets, rcond=None)[0]
    assert np.all(np.diff(record["loss"]) <= 1e-15)
    # A quadratic function of six weights takes about six steps, and its minimum is known to the root of the rounding.
    assert end.weights[0] == pytest.approx(best, abs=1e-7)
    assert record["applied_rate"].to_numpy()[1:] == pytest.approx(record["rate"].to_numpy(), rel=0)
    assert record["time"].to_numpy() == pytest.approx(np.cumsum([0, *record["rate"].to_numpy()]), rel=ROUNDING)


def newton(rate):
    def update(updates, state, params=None, *, hessian, **_):
        return jax.tree.map(lambda each: -rate * each / hessian, updates), state

    return optax.GradientTransformationExtraArgs(lambda _: (), update)


def demanding(_):
    raise ValueError("weights of three layers are needed")


OF_THREE_LAYERS = optax.GradientTransformation(demanding, lambda updates, state, params=None: (updates, state))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("options", "argument", "words"),
    [
        ({"optimizer": "adam", "learning_rate": 0.1}, "optimizer", "a GradientTransformation"),
        ({"optimizer": None, "learning_rate": 0.1}, "optimizer", "a GradientTransformation"),
        ({"optimizer": newton, "learning_rate": 0.1}, "optimizer", "the optimizer newton requires 'hessian'"),
        ({"optimizer": newton(0.1)}, "optimizer", "the optimizer newton requires 'hessian'"),
        ({"optimizer": OF_THREE_LAYERS}, "optimizer", "cannot be applied .weights of three layers are needed"),
        ({"optimizer": "sgd"}, "learning_rate", "give a number, a list of numbers, a number for each layer"),
        ({"optimizer": optax.adam}, "learning_rate", "give a number, a list of numbers, a number for each layer"),
        ({"optimizer": optax.adam(0.1), "learning_rate": 0.1}, "learning_rate", "with its own rate"),
        ({"optimizer": optax.adam(0.1), "learning_rate": [0.1, 0.2]}, "learning_rate", "with its own rate"),
        ({"optimizer": optax.adam(0.1), "learning_rate": cosine}, "learning_rate", "with its own rate"),
        ({"optimizer": accumulated(optax.sgd(0.1)), "learning_rate": 0.1}, "learning_rate", "with its own rate"),
    ],
)
def test_what_an_optimizer_lacks_or_has_twice_is_named(options, argument, words):
    with pytest.raises(InputError, match=words) as caught:
        run(**options)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "schedule", [lambda count: None, lambda: 0.1, lambda count: jnp.ones(2), lambda count: 0.1 if count > 1 else 0.2]
)
def test_a_schedule_that_is_none_is_told_as_the_learning_rate(schedule):
    with pytest.raises(InputError, match="number of updates") as caught:
        descend(TASK, NETWORK, Descent(learning_rate=schedule, steps=2))
    assert caught.value.argument == "learning_rate"


def end(**options):
    return np.asarray(run(**options)[1].weights[0])


def test_decay_is_part_of_the_gradient_that_momentum_gathers():
    weights, velocity = START, np.zeros((3, 2))
    for _ in range(STEPS):
        velocity = 0.9 * velocity + gradient(weights) + 0.3 * weights
        weights = weights - 0.05 * velocity
    found = end(learning_rate=0.05, optimizer=decayed(optax.sgd, np.array(0.3), momentum=0.9))
    np.testing.assert_allclose(found, weights, rtol=0, atol=ROUNDING)


def test_a_rate_that_falls_is_one_number_until_each_of_its_updates():
    weights = START
    for step in range(STEPS):
        weights = weights - 0.1 * 0.5 ** ((step >= 4) + (step >= 7)) * gradient(weights)
    found = end(learning_rate=falling(np.array(0.1), np.array([4, 7]), 0.5))
    np.testing.assert_allclose(found, weights, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("most", [None, 0.7])
def test_a_rate_that_is_annealed_is_a_cosine_and_shortens_gradients_that_are_too_long(most):
    weights, shortened = START, 0
    for step in range(STEPS):
        slopes = gradient(weights)
        size = np.linalg.norm(slopes)
        if most is not None and size > most:
            slopes, shortened = slopes * most / size, shortened + 1
        weights = weights - 0.15 * (1 + np.cos(np.pi * step / STEPS)) * (slopes + 0.2 * weights)
    assert most is None or 0 < shortened < STEPS
    found = end(learning_rate=0.3, optimizer=annealed("sgd", STEPS, largest_gradient=most, weight_decay=0.2))
    np.testing.assert_allclose(found, weights, rtol=0, atol=ROUNDING)


def test_runs_that_differ_in_a_number_end_elsewhere():
    found = [
        end(learning_rate=0.05, optimizer=decayed(optax.sgd, np.array(each), momentum=0.5)) for each in (0.0, 0.3, 0.6)
    ]
    assert len({each.tobytes() for each in found}) == 3
