"""A recorder as a callback of Lightning."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from dynascope.torch.recorder.recorder import Recorder

try:
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import Callback
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"LightningRecorder requires {error.name}, which is missing: run python -m pip install '.[integrations]' in a "
        "checkout.",
        name=error.name,
    ) from None

__all__ = ["LightningRecorder"]


class LightningRecorder(Callback):
    """Records a Lightning training run; one step is one update of the optimiser.

    The state of the callback is part of Lightning's checkpoints. A run that continues from a checkpoint continues its
    record, without the rows after the checkpoint. The recorded learning rates are those after the step of the
    scheduler.

    Args:
        path: The folder of the record; by convention, the name ends in `.zarr`.
        reference: The reference batch, as for `Recorder`. The inputs of the batch are passed to the forward method of
            the module.
        **options: Further options of `Recorder`, such as `preset`, `schedule` and `layers`.

    Attributes:
        recorder: The recorder during training; None before.

    Example:
        >>> import torch
        >>> callback = LightningRecorder("run.zarr", reference=(torch.randn(64, 2), torch.arange(64) % 2))
        >>> callback.state_dict()
        {'step': None, 'epoch': 0}
    """

    def __init__(self, path: str | PathLike[str], *, reference: Any, **options: Any):
        super().__init__()
        self.path, self.reference, self.options = path, reference, options
        self.recorder: Recorder | None = None
        self._resume: int | None = None
        self._updates = self._epochs = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the numbers of recorded steps and epochs."""
        if self.recorder is None:
            return {"step": None, "epoch": 0}
        return {"step": self.recorder.steps, "epoch": self.recorder.epochs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue the record from the step of a checkpoint."""
        self._resume, self._epochs = state_dict["step"], state_dict["epoch"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the record."""
        optimizer = trainer.optimizers[0] if trainer.optimizers else None
        options = {"resume": self._resume, **self.options}
        self.recorder = Recorder(pl_module, self.path, reference=self.reference, optimizer=optimizer, **options)
        self.recorder.epochs = self._epochs
        self._updates = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Add the loss of a batch, and record a step if the optimiser has updated the weights."""
        if self.recorder is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if loss is not None:
            # Lightning divides the loss by the number of batches whose gradients it accumulates.
            self.recorder.add_loss(loss * trainer.accumulate_grad_batches)
        if trainer.global_step > self._updates:
            self._updates = trainer.global_step
            self.recorder.step()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Record the end of an epoch."""
        if self.recorder is not None:
            self.recorder.end_epoch()

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Write all rows, so that a run can continue from the checkpoint."""
        if self.recorder is not None:
            self.recorder.flush()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Close the record."""
        self._close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Close the record of a failed run."""
        self._close()

    def _close(self) -> None:
        if self.recorder is not None:
            self.recorder.close()
