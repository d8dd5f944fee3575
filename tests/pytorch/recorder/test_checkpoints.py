"""Checkpoints give the rows that a recorder gives at the same steps."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.errors import InputError

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
from recorded_training import PAIR, mlp, sgd, train  # noqa: E402

from dynascope.torch import Recorder, record_checkpoints  # noqa: E402

# What checkpoints do not contain, and what depends on the clock.
UNKNOWN = ["loss", "mean_loss", "max_loss", "loss_count", "learning_rate"]
UNKNOWN += ["update_norm", "gradient_norm", "total_update_norm", "total_gradient_norm", "seconds", "probe_seconds"]


def saved_run(folder, preset, steps=(0, 2, 5)):
    model = mlp()

    def save(step):
        if step in steps:
            torch.save(model.state_dict(), folder / f"model-{step}.pt")

    save(0)
    optimizer = sgd(model)
    with Recorder(
        model,
        folder / "run.zarr",
        reference=PAIR,
        optimizer=optimizer,
        schedule=list(steps),
        max_overhead=None,
        verbose=False,
        layers=["0"],
        preset=preset,
    ) as recorder:
        train(model, recorder, optimizer=optimizer, steps=steps[-1], each=save)
    return recorder.read(), [folder / f"model-{step}.pt" for step in steps]


@pytest.mark.parametrize(
    ("form", "preset"),
    [
        pytest.param("plain", "standard", marks=pytest.mark.slow),
        ("wrapped", "light"),
        ("prefixed", "light"),
        ("safetensors", "light"),
    ],
)
def test_checkpoints_give_the_rows_of_a_recorder(form, preset, tmp_path):
    run, paths = saved_run(tmp_path, preset)
    for k, path in enumerate(paths):
        state = torch.load(path, weights_only=True)
        if form == "wrapped":
            torch.save({"model_state_dict": state, "epoch": 3}, path)
        if form == "prefixed":
            torch.save({f"module._orig_mod.{name}": each for name, each in state.items()}, path)
        if form == "safetensors":
            files = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
            paths[k] = path.with_suffix(".safetensors")
            files.save_file(state, paths[k])
    model = mlp(seed=8)
    before = [each.clone() for each in model.parameters()]
    found = record_checkpoints(model, paths, PAIR, out=tmp_path / "found.zarr", layers=["0"], preset=preset)
    assert all(map(torch.equal, before, model.parameters()))
    assert list(found["step"].values) == [0, 2, 5]
    assert run["measured"].values.all()
    for name in {*run.data_vars} - {*UNKNOWN}:
        np.testing.assert_array_equal(found[name].values, run[name].values, err_msg=str(name))


@pytest.mark.parametrize(
    ("change", "options", "match"),
    [
        (lambda path: path.unlink(), {}, "does not exist"),
        (lambda path: path.write_bytes(b"damaged"), {}, "not a checkpoint of this model"),
        (lambda path: torch.save({"9.weight": torch.ones(2)}, path), {}, "not a checkpoint of this model"),
        (lambda path: torch.save([1, 2], path), {}, "not a checkpoint of this model"),
        (lambda path: None, {"steps": [0]}, "steps has length 1, but paths has length 2"),
        (lambda path: None, {"steps": [5, 0]}, "steps"),
    ],
)
def test_bad_checkpoints_are_named(change, options, match, tmp_path):
    paths = [tmp_path / "a0.pt", tmp_path / "a1.pt"]
    for path in paths:
        torch.save(mlp().state_dict(), path)
    change(paths[1])
    with pytest.raises(InputError, match=match):
        record_checkpoints(mlp(), paths, PAIR, out=tmp_path / "run.zarr", preset="light", **options)


def test_steps_come_from_the_names_of_files_or_folders(tmp_path):
    paths = []
    for step in (100, 2000):
        (tmp_path / f"checkpoint-{step}").mkdir()
        paths.append(tmp_path / f"checkpoint-{step}" / "model.pt")
        torch.save(mlp().state_dict(), paths[-1])
    found = record_checkpoints(mlp(), paths, PAIR, out=tmp_path / "run.zarr", preset="light")
    assert list(found["step"].values) == [100, 2000]
    assert xr.open_zarr(tmp_path / "run.zarr")["written"] == 2
