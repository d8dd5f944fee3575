import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import MLP
from dynascope.networks.batch_normalisation import BatchNormalisation
from dynascope.tasks import Task
from dynascope.training import Batches, Descent, Latest, Sampled, descend

draw = np.random.default_rng(0)
TASK = Task(draw.normal(size=(16, 4)), draw.normal(size=(16, 2)))
STEPS = 20
# bfloat16 has eight binary digits, and rounds to the nearest.
ROUNDING = 2.0**-9
SEEN = []


def single(network):
    return jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_array(leaf) else leaf, network)


class Watched(eqx.Module):
    """A perceptron that tells in which precision it is applied."""

    inner: MLP

    def __call__(self, x):
        SEEN.append((str(x.dtype), str(self.inner.weights[0].dtype)))
        return self.inner(x)


NETWORK = Watched(single(MLP((4, 8, 8, 2), activation="tanh", seed=1)))
OF_STEPS = {
    "batch_loss": Sampled(lambda step: step.loss, range(STEPS)),
    "slopes": Sampled(lambda step: step.gradient.inner.weights[0], range(STEPS), ["feature", "neuron"]),
}


def run(**options):
    options = {"steps": STEPS, "save": [0, STEPS], "learning_rate": 0.1, "statistics": OF_STEPS, **options}
    return descend(TASK, NETWORK, Descent(**options), return_networks=True)


@pytest.mark.slow
@pytest.mark.parametrize("micro_size", [None, 4])
def test_bfloat16_computes_outputs_and_gradients_of_weights_in_single_precision(micro_size):
    exact, exact_end = run()
    SEEN.clear()
    record, end = run(compute_dtype="bfloat16", batches=Batches(micro_size=micro_size))
    # In training, and in evaluation.
    assert set(SEEN) == {("bfloat16", "bfloat16"), ("float32", "float32")}
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(eqx.filter(end, eqx.is_array)))
    assert record["batch_loss"].dtype == record["slopes"].dtype == record["loss"].dtype == np.float32
    # Evaluation before the first step is the same.
    assert float(record["loss"][0]) == float(exact["loss"][0])
    # Inputs, and of three layers the weights, products, sums and activations, are rounded: some ten times, so that
    # outputs are off by √10 roundings, of either sign, and the loss by less than twice that.
    off = np.abs(record["batch_loss"].to_numpy() / exact["batch_loss"].to_numpy() - 1)
    assert 0 < off.max() < 6 * ROUNDING
    # A gradient goes through as many on the way back, and is a mean in which samples cancel.
    slopes, expected = record["slopes"].to_numpy(), exact["slopes"].to_numpy()
    distances = np.linalg.norm(slopes - expected, axis=(1, 2)) / np.linalg.norm(expected, axis=(1, 2))
    assert 0 < distances.max() < 20 * ROUNDING
    moved = exact_end.inner.weights[0] - NETWORK.inner.weights[0]
    missed = end.inner.weights[0] - exact_end.inner.weights[0]
    assert np.linalg.norm(missed) < 20 * ROUNDING * np.linalg.norm(moved)


class Line(eqx.Module):
    w: np.ndarray

    def __call__(self, x):
        return self.w * x


def output(outputs, _):
    return outputs


def test_steps_below_the_rounding_of_bfloat16_add_up():
    task = Task(np.ones((4, 1)), np.zeros((4, 1)))
    options = {"steps": 64, "learning_rate": 2.0**-12, "save": [0, 64], "loss": output}
    _, end = descend(task, Line(np.float32(1)), Descent(compute_dtype="bfloat16", **options), return_networks=True)
    # Next to one is 1 − 2⁻⁸ in bfloat16; all of these are numbers of single precision.
    assert float(end.w) == 1 - 64 * 2.0**-12


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("network", "compute_dtype", "words"),
    [
        (MLP((4, 8, 8, 2), seed=1), "bfloat16", "the weights are float64"),
        (NETWORK, "float16", "give 'bfloat16'"),
    ],
)
def test_bfloat16_is_for_single_precision_and_the_only_choice(network, compute_dtype, words):
    with pytest.raises(InputError, match=words) as caught:
        descend(TASK, network, Descent(learning_rate=0.1, steps=1, compute_dtype=compute_dtype))
    assert caught.value.argument == "compute_dtype"


class Normalised(eqx.Module):
    """w · N(x), of which nothing but w is trained, since gains and shifts have no rate."""

    w: np.ndarray
    normalisation: BatchNormalisation

    def __call__(self, x):
        return self.normalisation.apply(jnp.asarray(x), training=False)[0] @ self.w

    def train_step_outputs(self, x):
        z, normalisation = self.normalisation.apply(x, training=True)
        return z @ self.w, eqx.tree_at(lambda each: each.normalisation, self, normalisation)


NORMALISED = Normalised(draw.normal(size=(4, 2)), BatchNormalisation(4))
RUNNING = {"inputs": Latest(lambda step: step.batch.inputs, ["sample", "feature"])}


@pytest.mark.slow
@pytest.mark.parametrize("micro_size", [None, 4])
def test_each_part_of_a_batch_is_normalised_by_itself_and_moves_the_running_statistics(micro_size):
    options = {"steps": 3, "save": range(4), "batches": Batches(8, micro_size=micro_size)}
    record, end = descend(
        TASK,
        NORMALISED,
        Descent(learning_rate={"w": 0.1, "normalisation": 1e-300}, statistics=RUNNING, **options),
        return_networks=True,
    )
    w, mean, variance = NORMALISED.w, np.zeros(4), np.ones(4)
    for inputs in record["inputs"].to_numpy()[1:]:
        rows = [int(np.flatnonzero(TASK.inputs[:, 0] == first)[0]) for first in inputs[:, 0]]
        slopes, parts = np.zeros_like(w), 8 // (micro_size or 8)
        for part in np.split(np.array(rows), parts):
            x, y = TASK.inputs[part], TASK.targets[part]
            z = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)
            slopes += z.T @ (z @ w - y) / 8
            mean, variance = 0.9 * mean + 0.1 * x.mean(axis=0), 0.9 * variance + 0.1 * x.var(axis=0, ddof=1)
        w = w - 0.1 * slopes
    # The arithmetic of three steps on numbers of order one, in another order.
    assert end.w == pytest.approx(w, abs=1e-14)
    assert end.normalisation.statistics.mean == pytest.approx(mean, abs=1e-14)
    assert end.normalisation.statistics.variance == pytest.approx(variance, abs=1e-14)
    outputs = (TASK.inputs - mean) / np.sqrt(variance + 1e-5) @ w
    assert float(record["loss"][-1]) == pytest.approx(np.mean(np.sum((outputs - TASK.targets) ** 2, axis=1)) / 2)


@pytest.mark.slow
def test_running_statistics_stay_in_single_precision_beside_bfloat16():
    network = single(NORMALISED)
    options = {"steps": 3, "learning_rate": 0.1, "save": [0, 3]}
    methods = [Descent(compute_dtype=each, **options) for each in (None, "bfloat16")]
    ends = [descend(TASK, network, method, return_networks=True)[1] for method in methods]
    exact, rounded = (end.normalisation.statistics for end in ends)
    assert rounded.mean.dtype == rounded.variance.dtype == np.float32
    # A tenth of the mean and of the variance of the inputs is added thrice; they and their squares are rounded.
    assert rounded.mean == pytest.approx(exact.mean, abs=3 * 0.1 * 3 * ROUNDING)
    assert rounded.variance == pytest.approx(exact.variance, rel=3 * ROUNDING)
    assert np.any(rounded.variance != exact.variance)
