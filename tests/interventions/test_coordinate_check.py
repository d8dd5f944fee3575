from __future__ import annotations

import math

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

from dynascope.errors import InputError
from dynascope.interventions import coordinate_check
from dynascope.interventions.width_scaling import coordinates_checked
from dynascope.networks import MLP, Convolutional, DeepLinear, TwoLayer, abc_network
from dynascope.tasks import Task
from dynascope.theory.regimes import abc_parametrisations
from dynascope.training import Descent

DRAW = np.random.default_rng(0)
TASK = Task(DRAW.normal(size=(8, 5)), DRAW.normal(size=(8, 1)))
SGD = Descent(learning_rate=0.1, steps=10)
WIDTHS = [64, 128, 256, 512, 1024]
NAMED = abc_parametrisations()


def of(name):
    return lambda width, seed: abc_network(NAMED[name], width, 5, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hidden", "trend"),
    [("NTK", -0.5, "vanishes"), ("muP", 0.0, "constant"), ("standard, rate 1/n", -0.5, "vanishes")],
)
def test_the_golden_slopes_of_the_second_hidden_layer(name, hidden, trend):
    found = coordinate_check(of(name), WIDTHS, TASK, SGD, parametrisation=NAMED[name])
    assert found.layers["trend"].tolist()[1:] == [trend, "constant"]
    assert found.layers["expected"].tolist()[1:] == [hidden, 0]
    np.testing.assert_allclose(found.layers["slope"], found.layers["expected"], atol=0.1)
    assert "expected slope is" in str(found).splitlines()[1]


def test_the_changes_are_those_of_training_without_the_check():
    width, seed, rate = 32, 1, 0.2
    weights = [np.asarray(each) for each in of("muP")(width, seed)[0].weights]
    rates = list(of("muP")(width, seed)[1].values())

    def layers(weights):
        first = TASK.inputs @ weights[0]
        second = np.tanh(first) @ weights[1]
        return [first, second, np.tanh(second) @ weights[2]]

    trained = list(weights)
    for _ in range(3):
        first, second, output = layers(trained)
        error = (output - TASK.targets) / len(output)
        inner = error @ trained[2].T * (1 - np.tanh(second) ** 2)
        outer = inner @ trained[1].T * (1 - np.tanh(first) ** 2)
        slopes = [TASK.inputs.T @ outer, np.tanh(first).T @ inner, np.tanh(second).T @ error]
        trained = [w - rate * factor * g for w, factor, g in zip(trained, rates, slopes, strict=True)]
    expected = [np.sqrt(np.mean((b - a) ** 2)) for a, b in zip(layers(weights), layers(trained), strict=True)]
    method = Descent(learning_rate=rate, steps=3)
    sizes = coordinate_check(of("muP"), [16, width], TASK, method, seeds=2).sizes
    np.testing.assert_allclose(sizes["change"].sel(width=width, seed=seed), expected, rtol=1e-10)
    initial = [np.sqrt(np.mean(each**2)) for each in layers(weights)]
    np.testing.assert_allclose(sizes["initial"].sel(width=width, seed=seed), initial, rtol=1e-10)


class Attention(eqx.Module):
    """Layers inside maps over positions, one of them called twice."""

    embed: eqx.nn.Linear
    attend: eqx.nn.MultiheadAttention
    readout: eqx.nn.Linear

    def __call__(self, x):
        h = jax.vmap(self.embed)(x.reshape(5, 1))
        h = self.attend(h, h, h) + self.attend(h, h, h)
        return self.readout(h.mean(axis=0))


def attention(width, seed):
    keys = jax.random.split(jax.random.key(seed), 3)
    return Attention(
        eqx.nn.Linear(1, width, key=keys[0]),
        eqx.nn.MultiheadAttention(2, width, key=keys[1]),
        eqx.nn.Linear(width, 1, key=keys[2]),
    )


def test_equinox_networks_of_samples_have_the_layers_of_their_modules():
    found = coordinate_check(attention, [8, 16], TASK, Descent(optax.adam(1e-3), steps=2), seeds=2)
    names = list(found.layers.index)
    assert names[0] == "embed"
    assert names[-1] == "readout"
    assert {"attend.query_proj", "attend.query_proj#2", "attend.output_proj"} < set(names)
    assert (found.sizes["change"] > 0).all()
    assert np.isnan(found.layers["expected"]).all()


def test_equinox_networks_have_the_changes_of_equal_mlps():
    def make(width, seed):
        return eqx.nn.MLP(5, 1, width, 2, use_bias=False, use_final_bias=False, key=jax.random.key(seed))

    def same(width, seed):
        layers = make(width, seed).layers
        network = MLP((5, width, width, 1), bias=False)
        return eqx.tree_at(lambda each: each.weights, network, tuple(np.asarray(each.weight.T) for each in layers))

    ours, theirs = (coordinate_check(each, [8, 16], TASK, SGD, seeds=2).sizes for each in (same, make))
    assert list(theirs["layer"]) == ["layers.0", "layers.1", "layers.2"]
    for name in ("initial", "change"):
        np.testing.assert_allclose(theirs[name], ours[name], rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda width, seed: TwoLayer(5, width, 1, seed=seed), ["first", "second"]),
        (lambda width, seed: DeepLinear((5, width, width, 1), seed=seed), ["weights.0", "weights.1", "weights.2"]),
    ],
)
def test_other_networks_have_their_weight_matrices(make, names):
    found = coordinate_check(make, np.array([8, 16]), TASK, Descent(learning_rate=0.01, steps=2), seeds=2)
    assert list(found.layers.index) == names
    assert (found.sizes["change"] > 0).all()


def checked(change, **options):
    change = np.asarray(change, float)
    given = {"confidence": 0.95, "tolerance": 0.2} | options
    widths = [2**power for power in range(4, 4 + change.shape[1])]
    return coordinates_checked(["one"], widths, change, change, None, **given).layers.loc["one"]


def test_exact_powers_have_their_slopes_and_trends():
    widths = 2.0 ** np.arange(4, 8)[:, None] * [1, 1, 1]
    for power, trend in ((-0.5, "vanishes"), (0.0, "constant"), (0.1, "constant"), (1.0, "grows")):
        found = checked([widths**power])
        assert found["slope"] == pytest.approx(power, abs=1e-12)
        assert (found["low"], found["high"]) == pytest.approx((power, power), abs=1e-12)
        assert found["trend"] == trend
    assert checked([[[1.0, 2.0], [1.0, 1.0]]])["trend"] == "undecided"
    assert checked([[[1.0, 2.0], [0.0, 1.0]]])["trend"] == "unchanged"
    assert checked([[[1.0, 2.0], [math.inf, 1.0]]])["trend"] == "diverges"


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_intervals_cover_the_slope_with_their_confidence(confidence):
    draw, runs = np.random.default_rng(5), 2000
    widths = 2.0 ** np.arange(4, 9)[:, None]
    covered = 0
    for _ in range(runs):
        found = checked([widths**-0.5 * np.exp(0.3 * draw.normal(size=(5, 6)))], confidence=confidence)
        covered += found["low"] <= -0.5 <= found["high"]
    # Four standard errors of a frequency.
    assert covered / runs == pytest.approx(confidence, abs=4 * math.sqrt(confidence * (1 - confidence) / runs))


def test_divergent_training_is_a_trend():
    found = coordinate_check(of("standard"), [64, 1024], TASK, SGD, seeds=2, parametrisation=NAMED["standard"])
    assert set(found.layers["trend"]) == {"diverges"}
    assert np.isnan(found.layers["expected"]).all()
    assert "diverges at width 1024" in str(found)
    assert np.isfinite(found.sizes["initial"]).all()


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"widths": [64]}, "widths"),
        ({"widths": [64, 64]}, "widths"),
        ({"widths": [64, 0]}, "widths"),
        ({"seeds": 1}, "seeds"),
        ({"confidence": 1.0}, "confidence"),
        ({"make": lambda width, seed: 3}, "make"),
        ({"make": lambda width: 3}, "make"),
        ({"make": lambda width, seed: MLP((4, width, 1))}, "make"),
        ({"make": lambda width, seed: MLP((5, *(3,) * (width // 8), 1))}, "make"),
        ({"make": of("NTK"), "method": Descent(learning_rate=[0.1, 0.2], steps=2)}, "method"),
        ({"make": lambda width, seed: Convolutional((1, 5), (width,), 1)}, "make"),
        ({"parametrisation": NAMED["mean field"]}, "parametrisation"),
    ],
)
def test_bad_input_is_rejected_by_name(changes, argument):
    given = {"make": of("NTK"), "widths": [8, 16], "task": TASK, "method": Descent(learning_rate=0.1, steps=1)}
    with pytest.raises(InputError) as caught:
        coordinate_check(**{**given, "seeds": 2, **changes})
    assert caught.value.argument.startswith(argument)
