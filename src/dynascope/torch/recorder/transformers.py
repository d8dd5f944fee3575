"""A recorder as a callback of the trainer of Hugging Face transformers."""
# pyright: reportMissingImports=false

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from dynascope.torch.recorder.recorder import Recorder

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"TransformersRecorder requires {error.name}, which is missing: run python -m pip install '.[integrations]' in "
        "a checkout.",
        name=error.name,
    ) from None

__all__ = ["TransformersRecorder"]


class TransformersRecorder(TrainerCallback):
    """Records a training run of the `transformers` trainer; one step is one update of the optimiser.

    The trainer does not pass the loss of each step to callbacks, so each row contains the losses that the trainer has
    logged since the previous row. Set `logging_steps=1` to record every loss. Gradients are read after they are
    clipped. With `resume_from_checkpoint`, the record continues too, without the rows after the checkpoint.

    Args:
        path: The folder of the record; by convention, the name ends in `.zarr`.
        reference: The reference batch, as for `Recorder`: for example a dictionary with `input_ids` and `labels`.
        **options: Further options of `Recorder`, such as `preset`, `schedule` and `layers`.

    Attributes:
        recorder: The recorder during training; None before.

    Example:
        >>> import torch
        >>> callback = TransformersRecorder("run.zarr", reference={"input_ids": torch.zeros(8, 4, dtype=torch.int64)})
        >>> callback.recorder is None
        True
    """

    def __init__(self, path: str | PathLike[str], *, reference: Any, **options: Any):
        self.path, self.reference, self.options = path, reference, options
        self.recorder: Recorder | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the record, or continue it after a checkpoint."""
        resume = state.global_step if state.global_step > 0 and Path(self.path).exists() else None
        self.recorder = Recorder(
            kwargs["model"],
            self.path,
            reference=self.reference,
            optimizer=getattr(kwargs.get("optimizer"), "optimizer", kwargs.get("optimizer")),
            **{"resume": resume, "first_step": state.global_step if resume is None else 0, **self.options},
        )
        self.recorder.epochs = int(state.epoch or 0)

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Record a step, before the trainer clears the gradients."""
        if self.recorder is not None:
            self.recorder.step()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep a logged loss for the next row."""
        if self.recorder is not None and logs and "loss" in logs:
            self.recorder.add_loss(float(logs["loss"]))

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Record the end of an epoch."""
        if self.recorder is not None:
            self.recorder.end_epoch()

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Write all rows, so that a run can continue from the checkpoint."""
        if self.recorder is not None:
            self.recorder.flush()

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Close the record."""
        if self.recorder is not None:
            self.recorder.close()
