from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.regimes import (
    OptimizerSettings,
    layer_scale_twin,
    matched_settings,
    normalised_layer_twin,
    twin_of,
)

SIZES = ((5, 12), (12, 9), (9, 2))
SGD = OptimizerSettings("sgd", 0.02, coupled_decay=0.01)
ADAM = OptimizerSettings("adam", 0.005, coupled_decay=0.01, epsilon=1e-3)
OPTIMIZERS = {
    "SGD": SGD,
    "momentum": dataclasses.replace(SGD, momentum=0.9),
    "Nesterov": dataclasses.replace(SGD, momentum=0.9, nesterov=True),
    "dampening": dataclasses.replace(SGD, momentum=0.9, dampening=0.1),
    "decoupled decay": dataclasses.replace(SGD, momentum=0.9, coupled_decay=0.0, decoupled_decay=0.01),
    "Adam": ADAM,
    "AdamW": dataclasses.replace(ADAM, coupled_decay=0.0, decoupled_decay=0.01),
}
TWINS = {  # each row of the table, with the activation
    "output scale": ("tanh", lambda c: twin_of("output scale", c, layers=3)),
    "target scale": ("tanh", lambda c: twin_of("target scale", c, layers=3)),
    "initial scale, output": ("relu", lambda c: twin_of("initial scale", c, layers=3)),
    "initial scale, target": ("relu", lambda c: twin_of("initial scale", c, layers=3, through="target")),
    "input scale": ("tanh", lambda c: twin_of("input scale", c, layers=3)),
    "relative initial scale": ("relu", lambda c: layer_scale_twin((1 / c, 1.0, c))),
    "loss scale": ("tanh", lambda c: twin_of("loss scale", c, layers=3)),
    "normalised layer": ("normalised", lambda c: normalised_layer_twin(c, layers=3)),
}
NUMBERS = ("learning_rate", "momentum", "dampening", "coupled_decay", "decoupled_decay", "epsilon")


def outputs(activation, params, x):
    weights, biases = params
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        z = x @ weight
        if layer == 0 and activation.startswith("normalised"):
            epsilon = float(activation.partition(" ")[2] or 0)
            x = jnp.tanh(z / jnp.sqrt(jnp.sum(weight**2) + epsilon))
            continue
        z += bias
        x = z if layer == 2 else jax.nn.relu(z) if activation == "relu" else jnp.tanh(z)
    return x


@functools.partial(jax.jit, static_argnames=("activation", "adam", "nesterov", "steps"))
def losses(params, scales, numbers, batches, x, y, activation, adam, nesterov, steps):
    """Losses of training with all scales and settings as arguments, so that both twins run the same program."""
    output, target, factor, loss_factor = scales

    def loss(params, batch):
        error = output * outputs(activation, params, factor * x[batch]) - target * y[batch]
        return loss_factor * jnp.mean(jnp.sum(error**2, axis=1)) / 2

    def step(carry, at):
        params, first, second = carry
        count, batch = at
        value, gradient = jax.value_and_grad(loss)(params, batch)

        def moved(weight, slope, m, v, rate, momentum, dampening, coupled, decoupled, epsilon):
            slope = slope + coupled * weight
            decayed = weight * (1 - rate * decoupled)
            if adam:
                m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
                change = (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + epsilon)
            else:
                m = jnp.where(count == 1, slope, momentum * m + (1 - dampening) * slope)
                change = slope + momentum * m if nesterov else m
            return decayed - rate * change, m, v

        found = jax.tree.map(moved, params, gradient, first, second, *numbers)
        return tuple(jax.tree.map(lambda _, each, i=i: each[i], params, found) for i in range(3)), value

    empty = jax.tree.map(jnp.zeros_like, params)
    counts = jnp.arange(1, steps + 1, dtype=x.dtype)
    return jax.lax.scan(step, (params, empty, empty), (counts, batches[:steps]))[1]


def trained(activation, scales, settings, steps, *, spoil=None):
    """Losses of one of the twins; `settings` for the weights and for the biases of each layer."""
    draw = np.random.default_rng(0)
    weights = [
        factor * draw.normal(size=size) / np.sqrt(size[0]) for factor, size in zip(scales.weights, SIZES, strict=True)
    ]
    biases = [factor * 0.3 * draw.normal(size=size[1]) for factor, size in zip(scales.biases, SIZES, strict=True)]
    x, y, batches = draw.normal(size=(16, 5)), draw.normal(size=(16, 2)), draw.integers(16, size=(1000, 6))
    numbers = [tuple([getattr(each, name) for each in group] for group in settings) for name in NUMBERS]
    one = settings[0][0]
    with jax.enable_x64(True):
        run = losses(
            (weights, biases),
            (scales.output, scales.target, scales.input, scales.loss),
            numbers,
            batches,
            x,
            y,
            activation=activation,
            adam=one.optimizer == "adam",
            nesterov=one.nesterov,
            steps=steps,
        )
    return np.asarray(run)


def both(name, optimizer, factor, steps):
    activation, make = TWINS[name]
    twin, settings = make(factor), OPTIMIZERS[optimizer]
    run = trained(activation, twin.run, ((settings,) * 3,) * 2, steps)
    return run * twin.loss_factor, trained(activation, twin.twin, twin.settings(settings), steps)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", TWINS)
def test_powers_of_two_give_bit_identical_losses(name, optimizer):
    for factor in (2.0, 0.5):
        run, twin = both(name, optimizer, factor, 1000)
        assert np.isfinite(run).all()
        assert run[0] != run[-1]
        np.testing.assert_array_equal(run, twin)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", TWINS)
def test_other_factors_give_equal_losses_up_to_rounding(name, optimizer):
    for factor in (1.5, 0.7):
        run, twin = both(name, optimizer, factor, 50)
        np.testing.assert_allclose(twin, run, rtol=1e-10)


@pytest.mark.parametrize("setting", ["epsilon", "coupled_decay", "learning_rate"])
def test_a_setting_that_is_not_matched_breaks_the_twin(setting):
    twin = twin_of("initial scale", 2.0, layers=3)
    run = trained("relu", twin.run, ((ADAM,) * 3,) * 2, 50)
    matched = twin.settings(ADAM)
    assert np.array_equal(run, trained("relu", twin.twin, matched, 50))
    wrong = tuple(
        tuple(dataclasses.replace(each, **{setting: getattr(ADAM, setting)}) for each in group) for group in matched
    )
    assert np.abs(trained("relu", twin.twin, wrong, 50) / run - 1).max() > 1e-4


def test_the_rates_of_sgd_break_the_twin_of_relative_initial_scales_under_adam():
    twin = layer_scale_twin((0.5, 1.0, 2.0))
    run = trained("relu", twin.run, ((ADAM,) * 3,) * 2, 50)
    wrong = tuple(
        tuple(
            dataclasses.replace(each, learning_rate=ADAM.learning_rate * of_sgd.learning_rate / SGD.learning_rate)
            for each, of_sgd in zip(group, group_of_sgd, strict=True)
        )
        for group, group_of_sgd in zip(twin.settings(ADAM), twin.settings(SGD), strict=True)
    )
    assert np.abs(trained("relu", twin.twin, wrong, 50) / run - 1).max() > 1e-2


def test_biases_that_are_scaled_as_the_weights_break_the_twin():
    twin = twin_of("initial scale", 2.0, layers=3)
    run = trained("relu", twin.run._replace(biases=(2.0,) * 3), ((SGD,) * 3,) * 2, 50)
    assert np.abs(trained("relu", twin.twin, twin.settings(SGD), 50) / run - 1).max() > 1e-2


def test_an_epsilon_of_the_normalisation_breaks_the_twin_unless_it_is_scaled():
    twin = normalised_layer_twin(2.0, layers=3)
    settings = twin.settings(SGD)
    run = trained("normalised 0.5", twin.run, ((SGD,) * 3,) * 2, 50)
    # The weights of the run are twice those of the twin, and ε adds to their squares.
    assert np.array_equal(run, trained("normalised 0.125", twin.twin, settings, 50))
    assert np.abs(trained("normalised 0.5", twin.twin, settings, 50) / run - 1).max() > 1e-4
    with pytest.raises(InputError, match="multiply it by the square of the factor"):
        normalised_layer_twin(2.0, layers=3, epsilon=0.5)


def test_a_schedule_multiplied_by_the_matched_factor_keeps_the_twin():
    twin, settings = twin_of("initial scale", 2.0, layers=3), SGD
    schedule = 0.02 * 0.99 ** np.arange(50)
    matched = matched_settings(settings, scale=twin.weight_scales[0], loss_factor=twin.loss_factor)
    factor = matched.learning_rate / settings.learning_rate
    assert [
        matched_settings(
            dataclasses.replace(settings, learning_rate=rate),
            scale=twin.weight_scales[0],
            loss_factor=twin.loss_factor,
        ).learning_rate
        for rate in schedule.tolist()
    ] == (factor * schedule).tolist()


def test_tanh_has_no_twin_of_the_initial_scale():
    twin = twin_of("initial scale", 2.0, layers=3)
    run = trained("tanh", twin.run, ((SGD,) * 3,) * 2, 50)
    assert np.abs(trained("tanh", twin.twin, twin.settings(SGD), 50) / run - 1).max() > 1e-2


def test_the_golden_rule_of_three_layers():
    twin = twin_of("initial scale", 2.0, layers=3, through="target")
    settings = OptimizerSettings("sgd", 0.1, momentum=0.9, coupled_decay=0.08)
    weights, _ = twin.settings(settings)
    assert twin.twin.target == 1 / 8
    assert {each.learning_rate for each in weights} == {0.1 * 16}
    assert {each.coupled_decay for each in weights} == {0.08 / 16}


factors = st.floats(0.01, 100)


@given(factors, factors, factors, factors, st.sampled_from(sorted(OPTIMIZERS)))
def test_matched_settings_compose_and_invert(scale, loss_factor, other_scale, other_factor, optimizer):
    settings = OPTIMIZERS[optimizer]
    once = matched_settings(settings, scale=scale, loss_factor=loss_factor)
    twice = matched_settings(once, scale=other_scale, loss_factor=other_factor)
    together = matched_settings(settings, scale=scale * other_scale, loss_factor=loss_factor * other_factor)
    back = matched_settings(once, scale=1 / scale, loss_factor=1 / loss_factor)
    for name in NUMBERS:
        assert getattr(twice, name) == pytest.approx(getattr(together, name))
        assert getattr(back, name) == pytest.approx(getattr(settings, name))


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: twin_of("output scale", 0.0, layers=2), "factor"),
        (lambda: twin_of("initial scale", 1e200, layers=3), "factor"),
        (lambda: twin_of("weight scale", 2.0, layers=3), "dial"),  # pyright: ignore[reportArgumentType]
        (lambda: layer_scale_twin([1.0, -1.0]), "factors"),
        (lambda: normalised_layer_twin(2.0, layers=2, layer=2), "layer"),
        (lambda: normalised_layer_twin(2.0, layers=2, epsilon=1e-5), "epsilon"),
        (lambda: OptimizerSettings("sgd", 0.0), "learning_rate"),
        (lambda: OptimizerSettings("adam", 0.1, momentum=0.9), "momentum"),
        (lambda: OptimizerSettings("sgd", 0.1, momentum=0.9, dampening=0.1, nesterov=True), "nesterov"),
        (lambda: matched_settings(SGD, scale=1e-200), "scale"),
    ],
)
def test_bad_input_is_rejected_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument.startswith(argument)
