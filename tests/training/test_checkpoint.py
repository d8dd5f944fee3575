import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from residual_classifier import Block, single

import dynascope
from dynascope.errors import InputError
from dynascope.networks import TwoLayer
from dynascope.tasks import CropAndFlip, Labelled, Task
from dynascope.training import Sampled, Total, checkpoint, descend, loop

draw = np.random.default_rng(0)
TASK = Task(draw.normal(size=(20, 2)), draw.normal(size=(20, 1)))
NETWORKS = [TwoLayer(2, 3, 1, seed=seed) for seed in range(3)]
NOISY = {"learning_rate": [0.01, 0.02], "batch_size": 6, "batches": "independent"}
STATISTICS = {"path": Total(lambda step: step.loss), "some": Sampled(lambda step: step.loss, [0, 40, 90])}


def noisy_adam(rate):
    """An optimiser with a random key and a state in bfloat16."""
    return optax.chain(optax.add_noise(1e-3, 0.5, jax.random.key(3)), optax.adam(rate, mu_dtype=jnp.bfloat16))


OPTIONS = {
    "steps": 120,
    "optimizer": noisy_adam,
    "record_steps": [0, 3, 64, 120],
    "step_statistics": STATISTICS,
    "return_networks": True,
    **NOISY,
}


@pytest.fixture(autouse=True)
def _short_pieces(monkeypatch):
    monkeypatch.setattr(loop, "_SECONDS", 1e-9)
    monkeypatch.setattr(loop, "_GROWTH", 4)


def stopped(path, at, networks=NETWORKS, task=TASK, **options):
    def stop(done, _):
        if done >= at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        descend(networks, task, checkpoint=path, progress=stop, **(OPTIONS | options))


@pytest.mark.slow
def test_a_run_goes_on_to_the_same_bits(tmp_path):
    path = tmp_path / "run.npz"
    whole, ends = descend(NETWORKS, TASK, **OPTIONS)
    stopped(path, 5)
    stopped(path, 50)
    told = []
    resumed, others = descend(NETWORKS, TASK, checkpoint=path, progress=lambda done, _: told.append(done), **OPTIONS)
    assert 50 < told[0] < 120
    for name in whole.data_vars:
        np.testing.assert_array_equal(whole[name], resumed[name])
    np.testing.assert_array_equal(ends.first, others.first)
    # A run that is finished is read.
    told.clear()
    again, _ = descend(NETWORKS, TASK, checkpoint=path, progress=lambda done, _: told.append(done), **OPTIONS)
    assert told == []
    np.testing.assert_array_equal(whole.loss, again.loss)


@pytest.mark.slow
def test_running_statistics_and_augmentation_go_on_too(tmp_path):
    path = tmp_path / "run.npz"
    images = draw.normal(size=(12, 4, 4, 1)).astype(np.float32)
    network = single(Block())
    task = Labelled(images, np.arange(12) % 2)
    options = {"augmentation": CropAndFlip(1), "loss": "cross_entropy", "step_statistics": None}
    options |= {"batches": "shared", "learning_rate": 0.01}
    whole, end = descend(network, task, **OPTIONS | options)
    stopped(path, 20, network, task, **options)
    resumed, other = descend(network, task, checkpoint=path, **OPTIONS | options)
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
        descend(**{"network": NETWORKS, "task": TASK, "checkpoint": path, **OPTIONS, **renamed(change)})
    assert caught.value.argument == "checkpoint"
    assert path.read_bytes() == before


def renamed(change):
    return {"network" if name == "networks" else name: value for name, value in change.items()}


@pytest.mark.slow
def test_the_checkpoint_of_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    monkeypatch.setattr(checkpoint, "__version__", "0.0.1")
    stopped(path, 5)
    monkeypatch.setattr(checkpoint, "__version__", dynascope.__version__)
    with pytest.raises(InputError, match=rf"another version 0\.0\.1, and this is {dynascope.__version__}"):
        descend(NETWORKS, TASK, checkpoint=path, **OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda _: b"no checkpoint", lambda _: b""])
def test_a_damaged_file_is_refused_and_kept(tmp_path, damage):
    path = tmp_path / "run.npz"
    stopped(path, 5)
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(InputError, match="cannot be read") as caught:
        descend(NETWORKS, TASK, checkpoint=path, **OPTIONS)
    assert caught.value.argument == "checkpoint"
    assert path.read_bytes() == before


def test_a_pickle_is_never_opened(tmp_path):
    path = tmp_path / "run.npz"
    np.savez(path, header=np.array([{"step": 1}], dtype=object))
    with pytest.raises(InputError, match="cannot be read"):
        descend(NETWORKS, TASK, checkpoint=path, **OPTIONS)


@pytest.mark.slow
def test_a_file_is_whole_or_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    stopped(path, 5)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint.np, "savez", full)
    with pytest.raises(OSError, match="no space left"):
        descend(NETWORKS, TASK, checkpoint=path, **OPTIONS)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("path", ["missing/run.npz", "."])
def test_a_place_that_cannot_hold_a_file_is_refused(tmp_path, path):
    with pytest.raises(InputError, match="folder that exists") as caught:
        descend(NETWORKS, TASK, checkpoint=tmp_path / path, **OPTIONS)
    assert caught.value.argument == "checkpoint"


def test_a_probe_outside_of_the_program_is_not_kept(tmp_path):
    with pytest.raises(InputError, match="statistics") as caught:
        descend(NETWORKS, TASK, checkpoint=tmp_path / "run.npz", probe=lambda network: {}, **OPTIONS)
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
    plain = {"step_statistics": None, "optimizer": "sgd", "learning_rate": 0.01}
    stopped(path, 5, NETWORKS[0], **plain | first)
    with pytest.raises(InputError, match="another setting"):
        descend(NETWORKS[0], TASK, checkpoint=path, **OPTIONS | plain | second)
    # The same numbers in other functions are the same run.
    again = (
        {"optimizer": steps_of(0.01)}
        if "optimizer" in first
        else {"learning_rate": optax.cosine_decay_schedule(0.01, 100)}
    )
    descend(NETWORKS[0], TASK, checkpoint=path, **OPTIONS | plain | again)
