import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from residual_classifier import Block, single

import dynascope
from dynascope.errors import InputError
from dynascope.flows import progress_listener
from dynascope.networks import TwoLayer
from dynascope.tasks import CropAndFlip, Labelled, Task
from dynascope.training import Batches, Descent, Sampled, Total, checkpoint, descend, loop

draw = np.random.default_rng(0)
TASK = Task(draw.normal(size=(20, 2)), draw.normal(size=(20, 1)))
NETWORKS = [TwoLayer(2, 3, 1, seed=seed) for seed in range(3)]
NOISY = {"learning_rate": [0.01, 0.02], "batches": Batches(6, independent=True)}
STATISTICS = {"path": Total(lambda step: step.loss), "some": Sampled(lambda step: step.loss, [0, 40, 90])}


def noisy_adam(rate):
    """An optimiser with a random key and a state in bfloat16."""
    return optax.chain(optax.add_noise(1e-3, 0.5, jax.random.key(3)), optax.adam(rate, mu_dtype=jnp.bfloat16))


OPTIONS = {
    "steps": 120,
    "optimizer": noisy_adam,
    "save": [0, 3, 64, 120],
    "statistics": STATISTICS,
    **NOISY,
}


@pytest.fixture(autouse=True)
def _short_pieces(monkeypatch):
    monkeypatch.setattr(loop, "_SECONDS", 1e-9)
    monkeypatch.setattr(loop, "_GROWTH", 4)


def trained(networks=NETWORKS, task=TASK, seed=0, **options):
    return descend(task, networks, Descent(**OPTIONS | options), seed=seed, return_networks=True)


def stopped(path, at, networks=NETWORKS, task=TASK, **options):
    def stop(done, *_):
        if done >= at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress_listener(stop):
        trained(networks, task, checkpoint=path, **options)


@pytest.mark.slow
def test_a_run_goes_on_to_the_same_bits(tmp_path):
    path = tmp_path / "run.npz"
    whole, ends = trained()
    stopped(path, 5)
    stopped(path, 50)
    told = []
    with progress_listener(lambda done, *_: told.append(done)):
        resumed, others = trained(checkpoint=path)
    assert 50 < told[0] < 120
    for name in whole.data_vars:
        np.testing.assert_array_equal(whole[name], resumed[name])
    np.testing.assert_array_equal(ends.first, others.first)
    # A run that is finished is read.
    told.clear()
    with progress_listener(lambda done, *_: told.append(done)):
        again, _ = trained(checkpoint=path)
    assert told == []
    np.testing.assert_array_equal(whole.loss, again.loss)


@pytest.mark.slow
def test_running_statistics_and_augmentation_go_on_too(tmp_path):
    path = tmp_path / "run.npz"
    images = draw.normal(size=(12, 4, 4, 1)).astype(np.float32)
    network = single(Block())
    task = Labelled(images, np.arange(12) % 2)
    options = {"learning_rate": 0.01, "loss": "cross_entropy", "statistics": None}
    options |= {"batches": Batches(6, augmentation=CropAndFlip(1))}
    whole, end = trained(network, task, **options)
    stopped(path, 20, network, task, **options)
    resumed, other = trained(network, task, checkpoint=path, **options)
    np.testing.assert_array_equal(whole.loss, resumed.loss)
    np.testing.assert_array_equal(
        end.block.first.normalisation.statistics.mean, other.block.first.normalisation.statistics.mean
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "of"),
    [
        ({"networks": [TwoLayer(2, 3, 1, seed=seed) for seed in (0, 1, 3)]}, "another network"),
        ({"networks": [TwoLayer(2, 4, 1, seed=seed) for seed in range(3)]}, "another network"),
        ({"task": Task(TASK.inputs, -TASK.targets)}, "another task"),
        ({"learning_rate": [0.01, 0.03]}, "another setting"),
        ({"seed": 1}, "another setting"),
        ({"steps": 130}, "another setting"),
        ({"optimizer": lambda rate: optax.chain(optax.add_noise(1e-3, 0.5, 3), optax.adam(rate))}, "another setting"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused_and_kept(tmp_path, change, of):
    path = tmp_path / "run.npz"
    stopped(path, 5)
    before = path.read_bytes()
    with pytest.raises(InputError, match=of) as caught:
        trained(checkpoint=path, **change)
    assert caught.value.argument == "checkpoint"
    assert path.read_bytes() == before


@pytest.mark.slow
def test_the_checkpoint_of_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    monkeypatch.setattr(checkpoint, "__version__", "0.0.1")
    stopped(path, 5)
    monkeypatch.setattr(checkpoint, "__version__", dynascope.__version__)
    with pytest.raises(InputError, match=rf"another version \(0\.0\.1, but this is {dynascope.__version__}\)"):
        trained(checkpoint=path)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda _: b"no checkpoint", lambda _: b""])
def test_a_damaged_file_is_refused_and_kept(tmp_path, damage):
    path = tmp_path / "run.npz"
    stopped(path, 5)
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(InputError, match="cannot be read") as caught:
        trained(checkpoint=path)
    assert caught.value.argument == "checkpoint"
    assert path.read_bytes() == before


def test_a_pickle_is_never_opened(tmp_path):
    path = tmp_path / "run.npz"
    np.savez(path, header=np.array([{"step": 1}], dtype=object))
    with pytest.raises(InputError, match="cannot be read"):
        trained(checkpoint=path)


@pytest.mark.slow
def test_a_file_is_whole_or_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    stopped(path, 5)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint.np, "savez", full)
    with pytest.raises(OSError, match="no space left"):
        trained(checkpoint=path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("path", ["missing/run.npz", "."])
def test_a_place_that_cannot_hold_a_file_is_refused(tmp_path, path):
    with pytest.raises(InputError, match="existing folder") as caught:
        trained(checkpoint=tmp_path / path)
    assert caught.value.argument == "checkpoint"


def test_a_probe_outside_of_the_program_is_not_kept(tmp_path):
    with pytest.raises(InputError, match="statistics") as caught:
        trained(probe=lambda network: {}, checkpoint=tmp_path / "run.npz")
    assert caught.value.argument == "probe"


def steps_of(rate):
    """An optimiser of the same name for every rate, which it has within."""

    def momentum(_):
        return optax.sgd(rate, momentum=0.9)

    return momentum


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"optimizer": steps_of(0.01)}, {"optimizer": steps_of(0.02)}),
        (
            {"learning_rate": optax.cosine_decay_schedule(0.01, 100)},
            {"learning_rate": optax.cosine_decay_schedule(0.05, 100)},
        ),
    ],
)
def test_numbers_within_functions_are_part_of_a_run(tmp_path, first, second):
    path = tmp_path / "run.npz"
    plain = {"statistics": None, "optimizer": "sgd", "learning_rate": 0.01}
    stopped(path, 5, NETWORKS[0], **plain | first)
    with pytest.raises(InputError, match="another setting"):
        trained(NETWORKS[0], checkpoint=path, **plain | second)
    # The same numbers in other functions are the same run.
    again = (
        {"optimizer": steps_of(0.01)}
        if "optimizer" in first
        else {"learning_rate": optax.cosine_decay_schedule(0.01, 100)}
    )
    trained(NETWORKS[0], checkpoint=path, **plain | again)
