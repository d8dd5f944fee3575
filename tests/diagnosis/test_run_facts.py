"""The facts of recorded runs, read from their folders."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope import Recorder
from dynascope.diagnosis.run_facts import run_facts
from dynascope.errors import InputError
from dynascope.symmetry import audit
from dynascope.theory.regimes import OptimizerSettings

X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
LABELS = np.arange(24) % 2
PARAMS = {"w": jnp.asarray(np.random.default_rng(1).normal(size=(3, 2)), jnp.float32)}


def apply(params, x):
    return x @ params["w"]


def cross_entropy(outputs, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(outputs), labels[:, None], axis=1).mean()


def test_a_jax_run(tmp_path):
    settings = OptimizerSettings("adam", 1e-3, decoupled_decay=0.1)
    options = {"criterion": cross_entropy, "batch_size": 12, "settings": settings, "flipped": LABELS == 1}
    preset = ["light", "fit"]
    path = tmp_path / "run.zarr"
    with Recorder(apply, PARAMS, path, reference=(X, LABELS), preset=preset, verbose=False, **options) as recorder:
        recorder.step({"w": 2 * PARAMS["w"]})
    run = run_facts(path)
    assert (run.optimizer, run.batch_size, run.criterion, run.symmetries) == ("AdamW", 12, "cross_entropy", ())
    assert (run.momentum, run.learning_rate) == (0.9, pytest.approx(1e-3))
    assert run.groups[0]["weight_decay"] == 0.1
    np.testing.assert_array_equal(run.initial_weights["w"], PARAMS["w"])
    assert run.last("flipped_share") == 0.5
    assert run.last("reference_loss") == pytest.approx(float(cross_entropy(2 * apply(PARAMS, X), LABELS)), rel=1e-5)


def test_a_run_without_settings(tmp_path):
    with Recorder(apply, PARAMS, tmp_path / "run.zarr", reference=X, preset="light", verbose=False):
        pass
    run = run_facts(tmp_path / "run.zarr")
    assert (run.optimizer, run.batch_size, run.criterion, [*run.groups]) == ("", None, "", [])
    assert np.isnan([run.momentum, run.learning_rate]).all()


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(InputError) as error:
        run_facts(tmp_path / "none.zarr")
    assert error.value.argument == "path"


def clip(network):
    network[0].weight.grad *= 1e-3 / network[0].weight.grad.norm()


def write(network):
    network[0].weight.data[0] += 0.01


@pytest.mark.parametrize(
    ("act", "cause"), [(None, None), (clip, "clipping by tensor"), (write, "changed between steps")]
)
def test_the_audit_of_a_pytorch_run_from_its_folder(tmp_path, act, cause):
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    from dynascope.torch import Recorder as TorchRecorder

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    x, y = torch.tensor(X), torch.tensor(LABELS)
    options = {"charges": True, "optimizer": optimizer, "verbose": False, "batch_size": 24}
    with TorchRecorder(network, tmp_path / "run.zarr", reference=(x, y), **options) as recorder:
        for step in range(20):
            loss = torch.nn.functional.cross_entropy(network(x), y)
            loss.backward()
            if act is not None and (act is clip or step == 12):
                act(network)
            optimizer.step()
            recorder.step(loss=loss)
            optimizer.zero_grad()
    run = run_facts(tmp_path / "run.zarr")
    found, direct = audit(run.record, run.symmetries), audit(recorder.read(), recorder.symmetries)
    assert found.clean is (act is None)
    assert found.table == direct.table
    assert run.optimizer == "SGD"
    assert run.groups[0]["weight_decay"] == 0.01
    if cause is not None:
        assert found.cause is not None
        assert cause in found.cause.name
        assert found.cause.paths == ("['0.weight']",)
