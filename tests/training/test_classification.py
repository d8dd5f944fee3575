"""Descent on labelled samples, as classifiers are trained: what the steps are, and what is recorded of them."""

import equinox as eqx
import jax
import numpy as np
import optax
import pytest
from residual_classifier import Block, single

from dynascope.errors import DivergenceError, InputError
from dynascope.networks.batch_normalisation import BatchNormalisation
from dynascope.networks.mlp import MLP
from dynascope.tasks import CropAndFlip, Labelled
from dynascope.training import Batches, Descent, descend

DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(24, 5)).astype(np.float32), DRAW.integers(3, size=24)
DATA, ONE_HOT = Labelled(X, Y), np.eye(3)[Y]
OTHER = Labelled(DRAW.normal(size=(24, 5)).astype(np.float32), DRAW.integers(3, size=24))
MOMENTUM, DECAY = 0.8, 0.05


LINEAR = single(MLP((5, 3), seed=1))


class Halving(eqx.Module):
    """A rate that falls to a half after each so many updates; the number is an array, so that programs are shared."""

    first: np.ndarray
    period: np.ndarray

    def __call__(self, updates):
        return self.first * 0.5 ** (updates // self.period)


def decayed(learning_rate):
    return optax.chain(optax.add_decayed_weights(DECAY), optax.sgd(learning_rate, momentum=MOMENTUM))


BY_HAND = {"epochs": 7, "learning_rate": Halving(np.float32(0.3), np.int32(3)), "optimizer": decayed}
BATCHES = {"learning_rate": 0.1, "loss": "cross_entropy", "batches": 4}


class Normalised(eqx.Module):
    """A linear classifier of normalised inputs."""

    normalisation: BatchNormalisation
    classifier: jax.Array | np.ndarray

    def __call__(self, x):
        return self.normalisation.apply(x, training=False)[0] @ self.classifier

    def train_step_outputs(self, x):
        h, layer = self.normalisation.apply(x, training=True)
        return h @ self.classifier, eqx.tree_at(lambda each: each.normalisation, self, layer)


class Brightness(eqx.Module):
    """Two multiples of the sum over the pixels of an image."""

    factors: np.ndarray

    def __call__(self, images):
        return images.sum(axis=(1, 2, 3))[:, None] * self.factors


def without_light(key, images):
    return 0 * images


def losses_of(outputs, labels=Y):
    """The cross-entropy of every sample."""
    return np.log(np.exp(outputs).sum(axis=1)) - outputs[np.arange(len(labels)), labels]


def slopes(weights, bias, loss):
    """Gradient of the loss of the linear classifier, and the loss."""
    outputs = X @ weights + bias
    if loss == "squared":
        residual, value = outputs - ONE_HOT, 0.5 * np.sum((outputs - ONE_HOT) ** 2, axis=1)
    else:
        residual, value = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True) - ONE_HOT, losses_of(outputs)
    return X.T @ residual / 24, residual.mean(axis=0), value.mean()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_steps_with_momentum_decay_and_a_rate_that_falls_are_those_written_by_hand(loss):
    record, network = descend(DATA, LINEAR, Descent(loss=loss, **BY_HAND), return_networks=True)
    weights, bias = LINEAR.weights[0], LINEAR.biases[0]
    speed, bias_speed = 0.0, 0.0
    losses, times = [slopes(weights, bias, loss)[2]], [0.0]
    for epoch in range(7):
        rate = 0.3 * 0.5 ** (epoch // 3)
        slope, bias_slope, _ = slopes(weights, bias, loss)
        speed = MOMENTUM * speed + slope + DECAY * weights
        bias_speed = MOMENTUM * bias_speed + bias_slope + DECAY * bias
        weights, bias = weights - rate * speed, bias - rate * bias_speed
        losses.append(slopes(weights, bias, loss)[2])
        times.append(times[-1] + rate)
    # Seven steps of float32.
    np.testing.assert_allclose(record.loss, losses, rtol=1e-5)
    np.testing.assert_allclose(network.weights[0], weights, atol=1e-5)
    np.testing.assert_allclose(network.biases[0], bias, atol=1e-5)
    np.testing.assert_allclose(record.time, times, rtol=1e-6)
    assert record.accuracy[-1] == pytest.approx(np.mean((X @ weights + bias).argmax(axis=1) == Y))
    assert record.attrs["loss_function"] == loss
    assert record.epoch.to_numpy().tolist() == list(range(8))


@pytest.mark.slow
def test_an_epoch_uses_every_sample_once_and_another_seed_another_order():
    # To first order in the rate, six steps on six batches are one of six times the length on all samples.
    options = {"steps": 6, "save": [0, 3, 6], **BATCHES}
    _, network = descend(DATA, LINEAR, Descent(**options | {"learning_rate": 1e-3}), return_networks=True)
    slope, _, _ = slopes(LINEAR.weights[0], LINEAR.biases[0], "cross_entropy")
    moved = network.weights[0] - LINEAR.weights[0]
    # The second order is smaller by about 6 · 10⁻³ times the curvature.
    np.testing.assert_allclose(moved, -6e-3 * slope, atol=0.02 * np.abs(6e-3 * slope).max())
    first, again, other = (
        descend(DATA, LINEAR, Descent(**options), seed=seed, return_networks=True)[1] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.weights[0], again.weights[0])
    assert not np.array_equal(first.weights[0], other.weights[0])


@pytest.mark.slow
def test_what_does_not_fill_a_batch_is_left_out():
    record = descend(DATA, LINEAR, Descent(epochs=2, **BATCHES | {"batches": 10}))
    assert record.step.to_numpy().tolist() == [0, 2, 4]
    assert record.epoch.to_numpy().tolist() == [0, 1, 2]


@pytest.mark.slow
def test_running_statistics_follow_the_data_do_not_decay_and_are_what_is_evaluated_with():
    shifted = X + np.float32(3)
    network = single(Normalised(BatchNormalisation(5), DRAW.normal(size=(5, 3))))
    method = Descent(decayed, learning_rate=1e-6, epochs=80, loss="cross_entropy", save=[0, 80])
    record, trained = descend(Labelled(shifted, Y), network, method, return_networks=True)
    statistics = trained.normalisation.statistics
    # What is left of the start is 0.9^80 = 2e-4 of it.
    np.testing.assert_allclose(statistics.mean, X.mean(axis=0) + 3, atol=2e-3)
    np.testing.assert_allclose(statistics.variance, X.var(axis=0, ddof=1), atol=2e-3)
    for place, each in enumerate((network, trained)):
        layer = each.normalisation.statistics
        outputs = (shifted - layer.mean) / np.sqrt(layer.variance + each.normalisation.epsilon) @ each.classifier
        # The gain has been one and the offset zero to 1e-4, the sum of all rates; float32.
        assert float(record.loss[place]) == pytest.approx(losses_of(outputs).mean(), rel=1e-3)


@pytest.mark.slow
def test_test_samples_are_measured_and_never_trained_on():
    alone, network = descend(DATA, LINEAR, Descent(epochs=2, **BATCHES), return_networks=True)
    both, same = descend(DATA, LINEAR, Descent(epochs=2, test=OTHER, **BATCHES), return_networks=True)
    np.testing.assert_array_equal(network.weights[0], same.weights[0])
    np.testing.assert_array_equal(alone.loss, both.loss)
    outputs = OTHER.inputs @ network.weights[0] + network.biases[0]
    assert both.test_accuracy[-1] == pytest.approx(np.mean(outputs.argmax(axis=1) == OTHER.labels))
    assert both.test_loss[-1] == pytest.approx(losses_of(outputs, OTHER.labels).mean(), rel=1e-5)  # float32
    assert "test_loss" not in alone


@pytest.mark.slow
def test_evaluation_covers_every_sample_once():
    # More than one block of a thousand, and not a whole number of them.
    data = Labelled(DRAW.normal(size=(2203, 5)).astype(np.float32), DRAW.integers(3, size=2203))
    outputs = data.inputs @ LINEAR.weights[0] + LINEAR.biases[0]
    record = descend(DATA, LINEAR, Descent(epochs=1, save=[0], test=data, **BATCHES))
    assert record.test_loss[0] == pytest.approx(losses_of(outputs, data.labels).mean(), rel=1e-5)  # float32
    assert record.test_accuracy[0] == pytest.approx((outputs.argmax(axis=1) == data.labels).mean(), rel=1e-6)


@pytest.mark.slow
def test_probes_see_the_network_at_the_recorded_epochs_and_may_find_more_each_time():
    seen = []

    def probe(network):
        seen.append(np.asarray(network.weights[0]))
        return {"size": ((), np.abs(seen[-1]).sum()), "strength": (("mode",), np.ones(len(seen)))}

    record, network = descend(
        DATA, LINEAR, Descent(epochs=3, save=[0, 2, 3], probe=probe, **BATCHES), return_networks=True
    )
    np.testing.assert_allclose(record["size"], [np.abs(each).sum() for each in seen])
    np.testing.assert_array_equal(seen[-1], network.weights[0])
    np.testing.assert_array_equal(seen[0], LINEAR.weights[0])
    assert record["mode"].to_numpy().tolist() == [1, 2, 3]
    assert np.isnan(record["strength"]).sum(axis=1).to_numpy().tolist() == [2, 1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("found", [{"loss": ((), 1.0)}, {"size": (("mode",), 1.0)}, {"size": (("time",), np.ones(2))}])
def test_a_probe_without_names_for_its_axes_or_with_a_name_that_is_taken_is_refused(found):
    with pytest.raises(InputError) as error:
        descend(DATA, LINEAR, Descent(epochs=2, probe=lambda _: found, **BATCHES))
    assert error.value.argument == "probe"


@pytest.mark.slow
def test_float32_is_kept_within_a_mode_of_float64():
    outside = descend(DATA, LINEAR, Descent(epochs=2, **BATCHES))
    with jax.enable_x64(True):
        inside, network = descend(DATA, LINEAR, Descent(epochs=2, **BATCHES), return_networks=True)
    assert inside.loss.dtype == network.weights[0].dtype == np.float32
    np.testing.assert_array_equal(outside.loss, inside.loss)


def test_divergence_is_told_with_its_time():
    with pytest.raises(DivergenceError, match="by step") as error:
        descend(DATA, LINEAR, Descent(learning_rate=1e6, epochs=200, loss="squared"))
    assert error.value.time >= 1e6


@pytest.mark.slow
def test_what_is_augmented_is_trained_on_and_is_not_what_is_measured():
    data = Labelled(DRAW.uniform(size=(6, 2, 2, 1)).astype(np.float32), np.arange(6) % 2)
    start = Brightness(np.array([0.3, -0.2], np.float32))
    batches = Batches(augmentation=without_light)
    method = Descent(learning_rate=1.0, epochs=2, loss="cross_entropy", batches=batches, test=data)
    record, end = descend(data, start, method, return_networks=True)
    np.testing.assert_array_equal(end.factors, start.factors)
    bright = data.inputs.sum(axis=(1, 2, 3))[:, None] * start.factors
    expected = losses_of(bright, data.labels).mean()
    # Without light the loss is ln 2 = 0.693; float32.
    assert abs(expected - np.log(2)) > 0.01
    np.testing.assert_allclose(record.loss, expected, rtol=1e-5)
    np.testing.assert_allclose(record.test_loss, expected, rtol=1e-5)


@pytest.mark.slow
def test_images_are_learned_by_a_residual_block_in_spite_of_crops_and_mirrors():
    labels = np.arange(96) % 2
    images = DRAW.uniform(size=(96, 8, 8, 1)).astype(np.float32)
    # Stripes, lying or standing.
    images[labels == 0, ::2] += 1
    images[labels == 1, :, ::2] += 1
    record = descend(
        Labelled(images[:64], labels[:64]),
        single(Block()),
        Descent(
            optax.sgd,
            learning_rate=0.05,
            epochs=15,
            loss="cross_entropy",
            batches=Batches(16, augmentation=CropAndFlip(1)),
            save=[0, 15],
            test=Labelled(images[64:], labels[64:]),
        ),
    )
    assert float(record.accuracy[-1]) >= 0.95
    assert float(record.test_accuracy[-1]) >= 0.95


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": -0.1}, "learning_rate"),
        ({"loss": "hinge"}, "loss"),
        ({"batches": 25}, "batches"),
        ({"batches": 0}, "batches"),
        ({"save": [0, 3]}, "save"),
        ({"save": [1, 1]}, "save"),
        ({"batches": Batches(augmentation=CropAndFlip())}, "images"),
        ({"test": X}, "test"),
        ({"test": Labelled(X, Y + 1)}, "network"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_named(fields, argument):
    with pytest.raises(InputError) as error:
        descend(DATA, LINEAR, Descent(**{"epochs": 2, "learning_rate": 0.1, "batches": 24, **fields}))
    assert error.value.argument == argument


def test_labels_beyond_the_outputs_and_a_negative_seed_are_named():
    for labels, seed, argument in ((Y + 1, 0, "network"), (Y, -1, "seed")):
        with pytest.raises(InputError) as error:
            descend(Labelled(X, labels), LINEAR, Descent(learning_rate=0.1, epochs=2), seed=seed)
        assert error.value.argument == argument
