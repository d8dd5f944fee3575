import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.tasks import CropAndFlip, Expectation, Labelled, SparseParity, Task
from dynascope.training import Descent, Sampled, descend
from dynascope.training.batches import Batch, Batches, Sampler, chosen_steps, sampler

SAMPLES = 12
# The input of a sample is its number, so that a batch tells its rows.
NUMBERED = Task(np.arange(SAMPLES, dtype=float)[:, None], np.zeros((SAMPLES, 1)))
STEPS = 8


TASK = Task(np.eye(6), np.ones((6, 1)))
STREAM = SparseParity(skills=2, bits=4, relevant_bits=2)


class Still(eqx.Module):
    """A network that its inputs do not move."""

    w: np.ndarray

    def __call__(self, x):
        return 0 * x + self.w - jax.lax.stop_gradient(self.w)


NETWORKS = [Still(np.zeros(1)) for _ in range(3)]
ROWS = {"rows": Sampled(lambda step: step.batch.inputs[:, 0], range(STEPS), ["sample"])}


def rows(size, seed=0, **options):
    batches = Batches(size, **options)
    method = Descent(learning_rate=0.1, steps=STEPS, batches=batches, save=[0, STEPS], statistics=ROWS)
    run = descend(NUMBERED, NETWORKS, method, seed=seed)
    return run["rows"].to_numpy().astype(int)


@pytest.mark.parametrize("independent", [False, True])
def test_an_epoch_sees_every_sample_once(independent):
    found = rows(3, independent=independent)
    for epoch in (found[:, :4], found[:, 4:]):
        assert np.array_equal(np.sort(epoch.reshape(3, -1)), np.tile(np.arange(SAMPLES), (3, 1)))
    assert not np.array_equal(found[:, :4], found[:, 4:])


def test_members_share_their_batches_or_have_their_own():
    shared, own = rows(3), rows(3, independent=True)
    assert np.array_equal(shared[0], shared[1])
    assert np.array_equal(shared[0], shared[2])
    assert not np.array_equal(own[0], own[1])
    assert not np.array_equal(own[1], own[2])


@pytest.mark.parametrize("independent", [False, True])
def test_the_order_follows_from_the_seed(independent):
    first, again, other = (rows(3, seed=seed, independent=independent) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_with_replacement_a_batch_may_be_larger_than_the_data_and_hold_a_sample_twice():
    found = rows(20, replacement=True)
    assert found.shape == (3, STEPS, 20)
    assert all(len(np.unique(batch)) < 20 for batch in found[0])
    assert found.min() >= 0
    assert found.max() < SAMPLES


def test_what_does_not_fill_a_batch_is_left_out():
    found = rows(5)[0].reshape(-1, 10)
    assert all(len(np.unique(epoch)) == 10 for epoch in found)


def test_independent_batches_are_independent_over_ten_thousand_members():
    """Indicators that the first sample is in the first batch, correlated between members and between epochs."""
    members, size = 10_000, 3
    batches = Sampler(size, SAMPLES, independent=True)
    data = Batch(jnp.arange(SAMPLES), jnp.arange(SAMPLES))

    @jit
    def drawn(numbers):
        def of_member(number):
            key = batches.key(0, number)
            draw = [batches.draw(key, step, batches.no_order(step), data, float)[0] for step in (0, 4)]
            return jnp.stack([each.inputs for each in draw])

        return jax.vmap(of_member)(numbers)

    found = np.asarray(drawn(jnp.arange(members)))
    held = (found == 0).any(axis=-1)
    # A share of 10 000 draws: standard error .0043; five of them.
    assert held.mean(axis=0) == pytest.approx(size / SAMPLES, abs=0.022)
    first, second = held[:, 0].astype(float), held[:, 1].astype(float)
    # A correlation of 10 000 pairs has the standard error 1/100; five of them.
    for one, other in [(first, second), (first[:-1], first[1:]), (first[: members // 2], first[members // 2 :])]:
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / np.sqrt(len(one))
    # Every sample comes first equally often: a chi-square of 11 degrees of freedom is below 40 but once in 25 000.
    counts = np.bincount(found[:, 0, 0], minlength=SAMPLES)
    assert np.sum((counts - members / SAMPLES) ** 2) / (members / SAMPLES) < 40


@pytest.mark.slow
def test_independent_batches_with_replacement_are_independent_too():
    members = 10_000
    batches = Sampler(2, SAMPLES, replacement=True, independent=True)
    data = Batch(jnp.asarray(NUMBERED.inputs[:, 0]), jnp.asarray(NUMBERED.targets[:, 0]))

    @jit
    def drawn(numbers):
        def of_member(number):
            key = batches.key(0, number)
            draw = [batches.draw(key, step, None, data, float)[0] for step in range(2)]
            return jnp.stack([each.inputs for each in draw])

        return jax.vmap(of_member)(numbers)

    found = np.asarray(drawn(jnp.arange(members))).reshape(members, 4)
    # Correlations of 10 000 pairs, each with the standard error 1/100; five of them.
    correlations = np.corrcoef(found.T) - np.eye(4)
    assert np.abs(correlations).max() < 0.05
    assert abs(np.corrcoef(found[:-1, 0], found[1:, 0])[0, 1]) < 0.05


@pytest.mark.slow
def test_inputs_are_augmented_in_training_only():
    images = np.zeros((6, 4, 4, 1))
    images[:, 1, 2, 0] = 1

    class Read(eqx.Module):
        w: np.ndarray

        def __call__(self, x):
            return x.reshape(len(x), -1)[:, :2] + self.w

    task = Labelled(images, np.array([0, 1] * 3))
    seen = {"seen": Sampled(lambda step: step.batch.inputs[..., 0].sum(axis=0), [0, 1, 2], ["feature", "target"])}
    network = Read(np.zeros(2))
    options = {"steps": 3, "learning_rate": 1e-9, "save": [0, 3], "statistics": seen}
    plain = descend(task, network, Descent(**options))
    moved = descend(task, network, Descent(batches=Batches(augmentation=CropAndFlip(1)), **options))
    assert plain["seen"].to_numpy()[0, 1, 2] == 6
    assert not np.array_equal(moved["seen"].to_numpy(), plain["seen"].to_numpy())
    assert not np.array_equal(moved["seen"][0], moved["seen"][1])
    # The rate is as good as zero.
    assert moved.loss.to_numpy() == pytest.approx(plain.loss.to_numpy(), abs=1e-7)


def test_draws_with_replacement_do_not_depend_on_the_precision():
    batches, data = Sampler(size=6, samples=50, replacement=True), Batch(np.arange(50), np.arange(50))
    drawn = []
    for double in (False, True):
        with jax.enable_x64(double):
            draw = jit(lambda data: batches.draw(batches.key(3, 0), 2, None, data, None)[0].inputs)
            drawn.append(draw(Batch(*map(jnp.asarray, data))).tolist())
    assert drawn[0] == drawn[1]


@pytest.mark.usefixtures("unchecked_types")
def test_a_batch_and_its_parts():
    batches = sampler(TASK, Batches(np.int64(4), micro_size=np.int64(2)))
    assert (batches.size, batches.samples, batches.per_epoch, batches.parts) == (4, 6, 1, 2)
    assert type(batches.size) is int
    assert hash(batches) == hash(sampler(TASK, Batches(4, micro_size=2)))
    whole = sampler(TASK, Batches(micro_size=3, independent=True))
    assert (whole.size, whole.per_epoch, whole.independent, whole.parts) == (None, 1, True, 2)


@pytest.mark.parametrize(
    ("task", "fields", "argument"),
    [
        (TASK, {"size": 7}, "batches"),
        (TASK, {"size": 0}, "size"),
        (TASK, {"size": True}, "size"),
        (TASK, {"size": 2.5}, "size"),
        (TASK, {"size": 4, "micro_size": 3}, "micro_size"),
        (TASK, {"size": 4, "micro_size": 0}, "micro_size"),
        (TASK, {"micro_size": 4}, "micro_size"),
        (TASK, {"replacement": True}, "replacement"),
        (STREAM, {}, "batches"),
        (STREAM, {"size": 4, "replacement": True}, "replacement"),
        (Expectation(lambda network: 0.0), {"size": 4}, "batches"),
        (Expectation(lambda network: 0.0), {"micro_size": 4}, "micro_size"),
        (Expectation(lambda network: 0.0), {"augmentation": lambda key, x: x}, "augmentation"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_batches_that_a_task_cannot_fill_are_refused(task, fields, argument):
    with pytest.raises(InputError) as caught:
        sampler(task, Batches(**fields))
    assert caught.value.argument == argument


def test_with_replacement_a_batch_may_be_larger_than_the_data():
    batches = sampler(TASK, Batches(20, replacement=True))
    assert (batches.size, batches.per_epoch) == (20, None)


def test_steps_are_counted_or_epochs_are():
    count, recorded, epochs = chosen_steps(None, 4, None, 3)
    assert (count, recorded.tolist(), epochs.tolist()) == (12, [0, 3, 6, 9, 12], [0, 1, 2, 3, 4])
    count, recorded, epochs = chosen_steps(None, 4, [0, 2, 4], 3)
    assert (count, recorded.tolist(), epochs.tolist()) == (12, [0, 6, 12], [0, 2, 4])
    count, recorded, epochs = chosen_steps(None, 1000, 4, 3)
    assert (count, recorded.tolist(), epochs.tolist()) == (3000, [0, 3, 96, 3000], [0, 1, 32, 1000])
    count, recorded, epochs = chosen_steps(13, None, range(0, 13, 5), 3)
    assert (count, recorded.tolist(), epochs) == (13, [0, 5, 10], None)
    count, recorded, _ = chosen_steps(1000, None, 4, 3)
    assert (count, recorded.tolist()) == (1000, [0, 1, 32, 1000])


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ((None, 5, None, None), "epochs"),
        ((None, 5, [0, 6], 3), "save"),
        ((5, None, [0, 6], 3), "save"),
        ((5, None, [3, 2], 3), "save"),
        ((None, 2**31, None, 3), "epochs"),
    ],
)
def test_steps_that_make_no_sense_are_refused(options, argument):
    with pytest.raises(InputError) as caught:
        chosen_steps(*options)
    assert caught.value.argument == argument
