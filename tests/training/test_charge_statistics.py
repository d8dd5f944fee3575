from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dynascope.errors import InputError
from dynascope.symmetry import Charge, Part, find_symmetries
from dynascope.tasks import Labelled, Task
from dynascope.theory import SGD
from dynascope.theory.symmetry import rounding_level, translation_charge
from dynascope.training import Descent, charge_statistics, descend

DRAW = np.random.default_rng(0)
DATA = Labelled(DRAW.normal(size=(24, 3)), DRAW.integers(0, 3, 24))
STEPS, RATE, MOMENTUM, DECAY = 200, 0.05, 0.8, 0.02


class Classifier(eqx.Module):
    """Linear layers into a ReLU layer: charges that are matrices, of units, and sums of the last weights."""

    inner: jax.Array
    hidden: jax.Array
    bias: jax.Array
    last: jax.Array

    def __init__(self, dtype):
        shapes = (3, 2), (2, 4), (4,), (4, 3)
        self.inner, self.hidden, self.bias, self.last = (DRAW.normal(size=s).astype(dtype) for s in shapes)

    def __call__(self, x):
        return jax.nn.relu(x @ self.inner @ self.hidden + self.bias) @ self.last


def found(network):
    weights, rest = eqx.partition(network, eqx.is_inexact_array)
    return find_symmetries(
        lambda theta, x: jax.nn.log_softmax(eqx.combine(theta, rest)(x)), weights, DATA.inputs
    ).symmetries


NETWORKS = {dtype: Classifier(dtype) for dtype in ("float64", "float32")}
with jax.enable_x64(True):
    SYMMETRIES = found(NETWORKS["float64"])


def trained(dtype, rule, *, steps=STEPS, rate=RATE, **declared):
    with jax.enable_x64(dtype == "float64"):
        return descend(
            DATA,
            NETWORKS[dtype],
            Descent(
                rule,
                learning_rate=rate,
                steps=steps,
                loss="cross_entropy",
                batches=8,
                statistics=charge_statistics(SYMMETRIES, **declared),
            ),
        )


def residual(run):
    return abs(run["measured_charge"] - run["predicted_charge"])


def heavy_ball(rate):
    return optax.chain(optax.add_decayed_weights(DECAY), optax.sgd(rate, momentum=MOMENTUM))


def nesterov(rate):
    return optax.chain(optax.add_decayed_weights(DECAY), optax.sgd(rate, momentum=MOMENTUM, nesterov=True))


def decoupled(rate):
    return optax.chain(optax.trace(MOMENTUM), optax.add_decayed_weights(DECAY), optax.scale_by_learning_rate(rate))


def clipped(rate):
    return optax.chain(optax.clip(0.05), heavy_ball(rate))


def shortened(rate):
    return optax.chain(optax.clip_by_global_norm(0.2), heavy_ball(rate))


def shortened_nesterov(rate):
    return optax.chain(optax.clip_by_global_norm(0.2), nesterov(rate))


def adam(rate):
    return optax.chain(optax.add_decayed_weights(DECAY), optax.adam(rate))


DECLARED = {"momentum": MOMENTUM, "weight_decay": DECAY}


def test_the_classifier_has_charges_of_every_kind():
    assert {each.kind for each in SYMMETRIES} == {"matrix", "rescale", "translation"}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (heavy_ball, "heavy_ball"),
        (nesterov, "nesterov"),
        (decoupled, "decoupled"),
        (shortened, "heavy_ball"),
        (shortened_nesterov, "nesterov"),
    ],
)
def test_the_law_holds_at_every_recorded_step(rule, name, dtype):
    run = trained(dtype, rule, optimizer=name, **DECLARED)
    moved = abs(run["measured_charge"] - run["measured_charge"][0]).max("step")
    assert (moved > 0.01).all()
    assert (residual(run) <= run["charge_bound"]).all()
    assert (residual(run) <= run["charge_warning"]).mean() > 0.99
    # The bound is of use: what moves the charges stands far above it.
    assert (run["charge_bound"].max("step") < (1e-9 if dtype == "float64" else 0.1) * moved).all()


GROUPS = {
    "rates": {".inner": 1.0, ".hidden": 0.5, ".bias": 2.0, ".last": 0.25},
    "weight_decay": {".inner": 0.1, ".hidden": 0.3, ".bias": 0.0, ".last": 0.2},
}
SHRINKING = {".inner": 0.1, ".hidden": 0.2, ".bias": 0.05, ".last": 0.4}  # of which ρλ is alike


def grouped(rule, decays):
    """A rule with rates and decays for each layer."""

    def made(rate):
        def of_layer(name):
            own = rate * GROUPS["rates"][f".{name}"]
            decay = optax.add_decayed_weights(decays[f".{name}"])
            if rule == "decoupled":
                return optax.chain(optax.trace(MOMENTUM), decay, optax.scale_by_learning_rate(own))
            return optax.chain(decay, optax.sgd(own, momentum=MOMENTUM, nesterov=rule == "nesterov"))

        def layers(weights):
            return jax.tree_util.tree_map_with_path(lambda path, _: path[-1].name, weights)

        return optax.multi_transform({name: of_layer(name) for name in ("inner", "hidden", "bias", "last")}, layers)

    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "decays"),
    [("heavy_ball", GROUPS["weight_decay"]), ("nesterov", GROUPS["weight_decay"]), ("decoupled", SHRINKING)],
)
def test_the_law_of_groups_with_rates_and_decays_of_their_own_holds(rule, decays):
    declared = {"optimizer": rule, "momentum": MOMENTUM, "rates": GROUPS["rates"], "weight_decay": decays}
    run = trained("float64", grouped(rule, decays), **declared, causes=True)
    moved = abs(run["measured_charge"] - run["measured_charge"][0]).max("step")
    assert (moved > 0.01).all()
    assert (residual(run) <= run["charge_bound"]).all()
    assert (run["charge_bound"].max("step") < 1e-8 * moved).all()
    # What causes are tested by knows the groups too: updates imply the gradient that there was.
    later = run.isel(step=run["step"] > 0)
    off = abs(later["part_pull"] - later["part_slope"])
    assert (off <= later["part_pull_rounding"] + later["part_slope_rounding"]).all()
    assert (run["change"][1] < 1e-12).all()  # of numbers of order one, divided by the rate


@pytest.mark.slow
def test_layers_with_rates_of_their_own_have_a_law_and_another_rate_breaks_it():
    rates = {name.removeprefix("."): RATE * rho for name, rho in GROUPS["rates"].items()}
    wrong = {**GROUPS["rates"], ".hidden": 0.51}
    kept, broken = (
        trained("float64", optax.sgd(1.0), rate=rates, rates=declared) for declared in (GROUPS["rates"], wrong)
    )
    assert (residual(kept) <= kept["charge_bound"]).all()
    assert (residual(broken) > broken["charge_bound"]).any()


@pytest.mark.parametrize(
    ("declared", "argument"),
    [
        ({"rates": {".inner": 1.0}}, "rates"),
        ({"rates": 0.0}, "rates"),
        ({"momentum": {".inner": 0.9, ".hidden": 0.8, ".bias": 0.9, ".last": 0.9}}, "momentum"),
        ({"optimizer": "decoupled", "weight_decay": GROUPS["weight_decay"]}, "weight_decay"),
    ],
)
def test_groups_without_a_law_are_refused(declared, argument):
    with pytest.raises(InputError) as error:
        charge_statistics(SYMMETRIES, **declared)
    assert error.value.argument == argument


@pytest.mark.slow
def test_the_law_of_a_schedule_holds():
    schedule = optax.cosine_decay_schedule(RATE, STEPS)
    run = trained("float64", heavy_ball, rate=schedule, **DECLARED)
    assert (residual(run) <= run["charge_bound"]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "declared"),
    [
        (clipped, DECLARED),
        (adam, DECLARED),
        (heavy_ball, {"momentum": MOMENTUM, "weight_decay": 0.9 * DECAY}),
        (heavy_ball, {"momentum": 0.99 * MOMENTUM, "weight_decay": DECAY}),
        (nesterov, DECLARED),
        (decoupled, DECLARED),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_training_that_is_not_what_was_declared_breaks_it(rule, declared, dtype):
    run = trained(dtype, rule, **declared)
    assert (residual(run) > run["charge_bound"]).any()


@pytest.mark.slow
def test_levels_and_sums_of_weights_are_those_of_the_theory():
    run = trained("float64", heavy_ball, steps=40, **DECLARED)
    chosen = np.concatenate([np.full(each.size, each.kind == "translation") for each in SYMMETRIES])
    start = run["measured_charge"].to_numpy()[0, chosen]
    steps = run["step"].to_numpy()
    expected = translation_charge(steps, start, SGD(RATE, weight_decay=DECAY, momentum=MOMENTUM))
    np.testing.assert_allclose(run["predicted_charge"].to_numpy()[:, chosen], expected, rtol=1e-12)
    assert (run["charge_warning"] <= run["charge_bound"]).all()
    assert (run["charge_bound"][0] > 0).all()


def test_weights_that_do_not_move_have_the_levels_of_the_theory():
    run = trained("float32", "sgd", rate=1e-30, steps=30)
    sizes = abs(NETWORKS["float32"].last).sum(1)
    chosen = np.concatenate([np.full(each.size, each.kind == "translation") for each in SYMMETRIES])
    level = rounding_level(np.tile(sizes, (31, 1)), np.zeros((30, 4)), degree=1, recorded="float32")
    for name, expected in (("charge_bound", level.bound), ("charge_warning", level.warning)):
        # The law is followed in 32 bits here, and its rounding is compensated.
        np.testing.assert_allclose(run[name].to_numpy()[-1, chosen], expected[-1], rtol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"symmetries": []}, "symmetries"),
        ({"symmetries": [1]}, "symmetries"),
        ({"momentum": 1.0}, "momentum"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"gradient_roundings": 0}, "gradient_roundings"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises(InputError) as caught:
        charge_statistics(**{"symmetries": SYMMETRIES, **arguments})
    assert caught.value.argument == named


def test_rates_of_layers_are_refused():
    with pytest.raises(InputError, match="differs between layers") as caught:
        trained("float32", "sgd", rate={"last": 0.1, "inner": 0.2, "hidden": 0.1, "bias": 0.1})
    assert caught.value.argument == "learning_rate"


class Normalised(eqx.Module):
    first: jax.Array
    bias: jax.Array
    second: jax.Array

    def __call__(self, x):
        hidden = x @ self.first + self.bias
        hidden = (hidden - hidden.mean(0)) / jnp.sqrt(hidden.var(0) + 1e-5)
        return jax.nn.relu(hidden) @ self.second


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_that_are_nothing_but_rounding_break_no_law(dtype):
    # A bias before a normalisation that begins at zero has no size of its own either.
    draw = np.random.default_rng(0)
    with jax.enable_x64(dtype == np.float64):
        starts = draw.normal(size=(4, 6)), np.zeros(6), draw.normal(size=(6, 2))
        network = Normalised(*(jnp.asarray(each, dtype) for each in starts))
        task = Task(draw.normal(size=(30, 4)), draw.normal(size=(30, 2)))
        bias = Charge("translation", (Part(".bias", np.arange(6), 1.0),), 6)
        run = descend(
            task, network, Descent(learning_rate=0.05, steps=60, batches=10, statistics=charge_statistics([bias]))
        )
    residual = abs(run["measured_charge"] - run["predicted_charge"])
    assert float(residual.max()) > 0
    assert (residual <= run["charge_bound"]).all()
