"""Lightning runs with a recorder: the same training, one row per update, and records that continue."""

from __future__ import annotations

import warnings
from typing import Any

import lightning.pytorch as lightning
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from recorded_training import INPUTS, LABELS, functional, same
from torch import nn

from dynascope.diagnosis import RecorderWarning
from dynascope.torch import LightningRecorder, Recorder

REFERENCE = INPUTS.float(), LABELS


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
        self.losses: list[float] = []
        self.gradients: list[float] = []

    def forward(self, x: Any) -> Any:
        return self.net(x)

    def training_step(self, batch: Any, number: int) -> Any:
        loss = functional.cross_entropy(self(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        self.gradients.append(
            torch.cat([each.grad.flatten() for each in self.parameters() if each.grad is not None]).norm().item()
        )

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        # Lightning takes the step of a scheduler before it calls the recorder.
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def fit(
    callbacks: list[Any], folder: Any, *, epochs: int = 3, parts: int = 2, model: Any = None, **options: Any
) -> Any:
    model = model or Module()
    torch.manual_seed(1)
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*REFERENCE), batch_size=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of Lightning about workers and devices
        trainer = lightning.Trainer(
            max_epochs=epochs,
            accumulate_grad_batches=parts,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=any(isinstance(each, ModelCheckpoint) for each in callbacks),
            callbacks=callbacks,
            default_root_dir=folder,
        )
        trainer.fit(model, batches, weights_only=False, **options)
    return model


def recorder_of(path: Any, **options: Any) -> Any:
    kept = {"reference": REFERENCE, "schedule": 1, "verbose": False, "preset": "light", **options}
    return LightningRecorder(path, **kept)


@pytest.mark.slow
def test_training_is_the_same_and_each_update_is_a_row(tmp_path):
    plain = fit([], tmp_path)
    callback = recorder_of(tmp_path / "run.zarr")
    model = fit([callback], tmp_path)
    assert same([*plain.state_dict().values(), *plain.losses], [*model.state_dict().values(), *model.losses])
    run = callback.recorder.read()
    assert list(run["step"].values) == list(range(7))
    np.testing.assert_allclose(run["mean_loss"].values[1:], np.reshape(model.losses, (6, 2)).mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(run["learning_rate"].values[:, 0], [0.1, 0.1, 0.05, 0.05, 0.025, 0.025, 0.0125])
    np.testing.assert_allclose(run["total_gradient_norm"].values[1:], model.gradients, rtol=1e-5)


@pytest.mark.slow
def test_a_run_that_continues_from_a_checkpoint_continues_its_record(tmp_path):
    def saving(name: str) -> ModelCheckpoint:
        return ModelCheckpoint(tmp_path / name, filename="{step}", save_top_k=-1, every_n_epochs=1)

    whole = recorder_of(tmp_path / "whole.zarr")
    fit([whole, saving("whole")], tmp_path)
    part = recorder_of(tmp_path / "part.zarr")
    fit([part, saving("part")], tmp_path)
    again = recorder_of(tmp_path / "part.zarr")
    fit([again, saving("part")], tmp_path, epochs=3, ckpt_path=tmp_path / "part" / "step=2.ckpt")
    one, other = whole.recorder.read(), again.recorder.read()
    assert list(one["step"].values) == list(other["step"].values) == list(range(7))
    np.testing.assert_array_equal(one["weight_norm"].values[:3], other["weight_norm"].values[:3])
    assert list(other["epoch"].values) == list(one["epoch"].values)


@pytest.mark.slow
def test_a_failed_run_releases_its_record(tmp_path):
    class Failing(Module):
        def on_train_batch_start(self, batch: Any, number: int) -> None:
            if number == 2:
                raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        fit([recorder_of(tmp_path / "run.zarr")], tmp_path, model=Failing())
    model = Module()
    options = {"reference": REFERENCE, "preset": "light", "optimizer": model.configure_optimizers()[0][0]}
    with pytest.warns(RecorderWarning, match="initial weights"):  # before the first optimiser step
        recorder = Recorder(model, tmp_path / "run.zarr", resume=1, **options)
    with recorder:
        assert list(recorder.read()["step"].values) == [0, 1]
