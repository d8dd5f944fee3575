import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import DivergenceError, InputError
from dynascope.flows.classification import train_classifier
from dynascope.networks.batch_normalisation import BatchNormalisation
from dynascope.networks.mlp import MLP
from dynascope.networks.residual import ResidualBlock

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(24, 5)).astype(np.float32)
Y = DRAW.integers(3, size=24)
ONE_HOT = np.eye(3)[Y]
OTHER = np.random.default_rng(1)
OTHER_X, OTHER_Y = OTHER.normal(size=(24, 5)).astype(np.float32), OTHER.integers(3, size=24)
LINEAR = MLP((5, 3), seed=1)


class Normalised(eqx.Module):
    """A linear classifier of normalised inputs."""

    normalisation: BatchNormalisation
    classifier: jax.Array | np.ndarray

    def __call__(self, x):
        return self.normalisation.apply(x, training=False)[0] @ self.classifier

    def train_step_outputs(self, x):
        h, layer = self.normalisation.apply(x, training=True)
        return h @ self.classifier, eqx.tree_at(lambda each: each.normalisation, self, layer)


class Block(eqx.Module):
    """A residual block, the mean over pixels, and a linear layer."""

    block: ResidualBlock
    classifier: jax.Array | np.ndarray

    def __init__(self):
        draw = np.random.default_rng(3)
        self.block, self.classifier = ResidualBlock(1, 6, 1, draw), draw.normal(size=(6, 2))

    def __call__(self, x):
        return self.block.apply(x, training=False)[0].mean(axis=(1, 2)) @ self.classifier

    def train_step_outputs(self, x):
        h, block = self.block.apply(x, training=True)
        return h.mean(axis=(1, 2)) @ self.classifier, eqx.tree_at(lambda each: each.block, self, block)


def slopes(weights, bias, loss):
    """Gradient of the loss of the linear classifier, and the loss."""
    outputs = X @ weights + bias
    if loss == "squared":
        residual, value = outputs - ONE_HOT, 0.5 * np.sum((outputs - ONE_HOT) ** 2, axis=1)
    else:
        softmax = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
        residual, value = softmax - ONE_HOT, -np.log(softmax[np.arange(24), Y])
    return X.T @ residual / 24, residual.mean(axis=0), value.mean()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_steps_are_those_written_by_hand(loss):
    record, network = train_classifier(
        LINEAR, X, Y, epochs=7, learning_rate=0.3, momentum=0.8, weight_decay=0.05, rate_factor=0.5, rate_period=3,
        loss=loss, batch_size=24,
    )  # fmt: skip
    weights, bias = LINEAR.weights[0], LINEAR.biases[0]
    speed, bias_speed = 0.0, 0.0
    losses, times = [slopes(weights, bias, loss)[2]], [0.0]
    for epoch in range(7):
        rate = 0.3 * 0.5 ** (epoch // 3)
        slope, bias_slope, _ = slopes(weights, bias, loss)
        speed = 0.8 * speed + slope + 0.05 * weights
        bias_speed = 0.8 * bias_speed + bias_slope + 0.05 * bias
        weights, bias = weights - rate * speed, bias - rate * bias_speed
        losses.append(slopes(weights, bias, loss)[2])
        times.append(times[-1] + rate)
    # Seven steps of float32.
    np.testing.assert_allclose(record.loss, losses, rtol=1e-5)
    np.testing.assert_allclose(network.weights[0], weights, atol=1e-5)
    np.testing.assert_allclose(network.biases[0], bias, atol=1e-5)
    np.testing.assert_allclose(record.time, times, rtol=1e-12)
    assert record.accuracy[-1] == pytest.approx(np.mean((X @ weights + bias).argmax(axis=1) == Y))
    assert record.attrs["loss_function"] == loss


@pytest.mark.slow
def test_an_epoch_uses_every_image_once():
    # To first order in the rate, six steps on six batches are one of six times the length on all images.
    record, network = train_classifier(LINEAR, X, Y, epochs=1, learning_rate=1e-3, momentum=0.0, batch_size=4)
    slope, _, _ = slopes(LINEAR.weights[0], LINEAR.biases[0], "cross_entropy")
    moved = network.weights[0] - LINEAR.weights[0]
    # The second order is smaller by about 6 · 10⁻³ times the curvature.
    np.testing.assert_allclose(moved, -6e-3 * slope, atol=0.02 * np.abs(6e-3 * slope).max())
    assert record.step.to_numpy().tolist() == [0, 6]


@pytest.mark.slow
def test_what_does_not_fill_a_batch_is_left_out():
    record, _ = train_classifier(LINEAR, X, Y, epochs=2, learning_rate=0.1, batch_size=10)
    assert record.step.to_numpy().tolist() == [0, 2, 4]
    assert record.epoch.to_numpy().tolist() == [0, 1, 2]


@pytest.mark.slow
def test_a_seed_gives_the_same_batches_again():
    first, again, other = (
        train_classifier(LINEAR, X, Y, epochs=1, learning_rate=0.1, batch_size=4, seed=seed)[1] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.weights[0], again.weights[0])
    assert not np.array_equal(first.weights[0], other.weights[0])


@pytest.mark.slow
def test_running_statistics_follow_the_data_and_do_not_decay():
    network = Normalised(BatchNormalisation(5), DRAW.normal(size=(5, 3)))
    record, trained = train_classifier(
        network, X + 3, Y, epochs=80, learning_rate=1e-6, weight_decay=1.0, batch_size=24, record_epochs=[0, 80]
    )
    statistics = trained.normalisation.statistics
    # What is left of the start is 0.9^80 = 2e-4 of it.
    np.testing.assert_allclose(statistics.mean, X.mean(axis=0) + 3, atol=2e-3)
    np.testing.assert_allclose(statistics.variance, X.var(axis=0, ddof=1), atol=2e-3)
    outputs = np.asarray(trained(jnp.asarray(X + 3)))
    softmax = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    # Recorded in evaluation; float32.
    assert float(record.loss[-1]) == pytest.approx(-np.log(softmax[np.arange(24), Y]).mean(), rel=1e-4)


@pytest.mark.slow
def test_test_images_are_measured_and_never_trained_on():
    options = {"epochs": 2, "learning_rate": 0.1, "batch_size": 4}
    alone, network = train_classifier(LINEAR, X, Y, **options)
    both, same = train_classifier(LINEAR, X, Y, test_images=OTHER_X, test_labels=OTHER_Y, **options)
    np.testing.assert_array_equal(network.weights[0], same.weights[0])
    np.testing.assert_array_equal(alone.loss, both.loss)
    outputs = OTHER_X @ network.weights[0] + network.biases[0]
    assert both.test_accuracy[-1] == pytest.approx(np.mean(outputs.argmax(axis=1) == OTHER_Y))
    assert "test_loss" not in alone


@pytest.mark.slow
def test_probes_see_the_network_at_the_recorded_epochs():
    seen = []

    def probe(network):
        seen.append(np.asarray(network.weights[0]))
        # One more mode each time.
        return {"size": ((), np.abs(seen[-1]).sum()), "strength": (("mode",), np.ones(len(seen)))}

    record, network = train_classifier(
        LINEAR, X, Y, epochs=3, learning_rate=0.1, batch_size=4, record_epochs=[0, 2, 3], probe=probe
    )
    np.testing.assert_allclose(record["size"], [np.abs(each).sum() for each in seen])
    np.testing.assert_array_equal(seen[-1], network.weights[0])
    np.testing.assert_array_equal(seen[0], LINEAR.weights[0].astype(np.float32))
    assert record["mode"].to_numpy().tolist() == [1, 2, 3]
    assert np.isnan(record["strength"]).sum(axis=1).to_numpy().tolist() == [2, 1, 0]


def test_float32_is_kept_within_a_mode_of_float64():
    options = {"epochs": 1, "learning_rate": 0.1, "batch_size": 4}
    outside, _ = train_classifier(LINEAR, X, Y, **options)
    with jax.enable_x64(True):
        inside, network = train_classifier(LINEAR, X.astype(np.float64), Y, **options)
    assert network.weights[0].dtype == np.float32
    np.testing.assert_array_equal(outside.loss, inside.loss)


@pytest.mark.slow
def test_divergence_is_reported_with_its_time():
    with pytest.raises(DivergenceError, match="by epoch") as error:
        train_classifier(LINEAR, X, Y, epochs=200, learning_rate=1e6, loss="squared", batch_size=24)
    assert error.value.time >= 1e6


@pytest.mark.slow
def test_images_are_learned_by_a_residual_block_in_spite_of_crops_and_mirrors():
    labels = np.arange(96) % 2
    images = DRAW.uniform(size=(96, 8, 8, 1)).astype(np.float32)
    # Stripes, lying or standing.
    images[labels == 0, ::2] += 1
    images[labels == 1, :, ::2] += 1
    record, _ = train_classifier(
        Block(), images[:64], labels[:64], epochs=15, learning_rate=0.05, batch_size=16, crop_padding=1, flip=True,
        test_images=images[64:], test_labels=labels[64:], record_epochs=[0, 15],
    )  # fmt: skip
    assert float(record.accuracy[-1]) >= 0.95
    assert float(record.test_accuracy[-1]) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": -0.1}, "learning_rate"),
        ({"momentum": 1.0}, "momentum"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"rate_period": 0}, "rate_period"),
        ({"rate_factor": 0.0}, "rate_factor"),
        ({"loss": "hinge"}, "loss"),
        ({"batch_size": 25}, "batch_size"),
        ({"batch_size": 0}, "batch_size"),
        ({"crop_padding": -1}, "crop_padding"),
        ({"flip": True}, "crop_padding"),
        ({"record_epochs": [0, 3]}, "record_epochs"),
        ({"record_epochs": [1, 1]}, "record_epochs"),
        ({"labels": Y + 1}, "labels"),
        ({"labels": Y[:3]}, "labels"),
        ({"images": X.reshape(24, 5, 1)}, "labels"),
        ({"images": np.full_like(X, np.nan)}, "images"),
        ({"images": X.astype(np.uint8)}, "images"),
        ({"test_images": X}, "test_images"),
        ({"test_images": X, "test_labels": Y - 1}, "test_labels"),
        ({"probe": lambda network: {"loss": ((), 1.0)}}, "probe"),
        ({"probe": lambda network: {"size": (("mode",), 1.0)}}, "probe"),
        ({"probe": lambda network: {"size": (("colour",), np.ones(2))}}, "colour"),
        ({"seed": -1}, "seed"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_named(fields, argument):
    with pytest.raises(InputError) as error:
        train_classifier(
            **{
                "network": LINEAR,
                "images": X,
                "labels": Y,
                "epochs": 2,
                "learning_rate": 0.1,
                "batch_size": 24,
                **fields,
            }
        )
    assert error.value.argument == argument
