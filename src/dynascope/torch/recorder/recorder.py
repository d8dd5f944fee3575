"""Record features, kernels and weights of a PyTorch model while it trains."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from os import PathLike
from typing import Any

import torch

from dynascope.diagnosis.measurements.curvature import CURVATURE, CURVATURE_BATCH
from dynascope.diagnosis.parameter_selection import selection
from dynascope.diagnosis.preset import probes_of
from dynascope.diagnosis.probe import Probe
from dynascope.diagnosis.run_recorder import RunRecorder
from dynascope.diagnosis.schedule import Schedule, as_schedule
from dynascope.diagnosis.training_settings import training_attributes
from dynascope.symmetry import Charge
from dynascope.torch.modules import unwrapped
from dynascope.torch.recorder.charge_probe import charge_attributes, charge_probe, watched_charges
from dynascope.torch.recorder.micro_batches import MicroBatchGradients
from dynascope.torch.recorder.module_reader import ModuleReader
from dynascope.torch.recorder.nearest_theory import nearest_theory
from dynascope.torch.recorder.preconditioner import is_adam, preconditioned_probe
from dynascope.torch.recorder.whole_weights import require_whole_weights
from dynascope.torch.symmetry.watch_charges import WatchedCharges
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import Fraction, NonNegativeInt, PositiveFloat, PositiveInt

__all__ = ["Recorder"]


@checked
class Recorder:
    """Records a PyTorch training run: weights, gradients, features, neural collapse and the neural tangent kernel.

    Measurements run on a fixed reference batch, in evaluation mode, with a private copy of the module that shares its
    weights. The measurements do not change training: weights, gradients, buffers, random numbers and losses are
    bit-identical with and without the recorder. The record is a growing folder that `dynascope report` turns into a
    page and that xarray can read at any time.

    Call `step` after `optimizer.step()` and before `zero_grad()`. With gradient accumulation, call `step` once per
    update. In distributed data-parallel training, only rank 0 records.

    Args:
        model: The module. It may be compiled, or wrapped for data-parallel training.
        path: The folder of the record, which must not exist; by convention, the name ends in `.zarr`.
        reference: The reference batch: a pair of inputs and targets, a dictionary of arguments in which `labels` are
            the targets, or inputs alone. Inputs are one tensor, a tuple of positional arguments, or a dictionary of
            keyword arguments. 100 to 1000 examples are enough.
        optimizer: The optimiser, whose learning rates and settings are recorded; None to omit them.
        criterion: The loss, a function of outputs and targets that averages over examples, for the loss on the
            reference batch and for probes of the curvature; None to omit these.
        preset: "light", "standard" or "full", or a list of preset names, probe names and probes; see
            `diagnosis.probes_of`.
        schedule: When to measure: "log" for 16 rows per decade of steps, n for every n steps, "epochs" for the end of
            each epoch, a list of steps, or a schedule of `diagnosis`. Expensive probes have their own schedule.
        charges: Whether to record the charges of the model's symmetries with the values that their laws predict, for
            `symmetry.audit`; or the symmetries to record. Charges are tracked at every step, so recording takes more
            time, and the optimiser must have a known law, such as `torch.optim.SGD`.
        causes: Whether charges are recorded with the statistics from which `symmetry.audit` names the causes of broken
            laws. They are expensive: see `symmetry.watch_charges`. Not available in data-parallel training.
        layers: Names of submodules whose outputs are features, besides the input of the last linear layer.
        parameters: One or more patterns of the names of recorded parameters, such as "encoder.*", or a function of the
            name; None for all trainable parameters.
        output: Returns the outputs (n, c) from the result of the module; None if the result is a tensor, has `logits`,
            or contains the outputs as its first tensor.
        max_overhead: The largest share of the run's time that measurements may take; None for no limit. Expensive
            probes that would exceed this share are skipped. The first ten seconds of measurements, the first snapshot,
            the next run of each probe and charges are not limited.
        kernel_examples: Number of examples in the neural tangent kernel, taken from the start of the reference batch.
        batch_size: Number of examples per training step, which is stored for the diagnosis of the run and used for the
            batches whose curvature is measured; None if unknown, with batches of 32 for the curvature.
        flipped: The examples of the reference batch whose labels are known to be wrong, such as labels that you flipped
            to measure memorisation: a boolean mask of shape (n,), or indices; None if unknown.
        memory: Bytes that the kernel may use, in addition to the model.
        strict: Whether to raise an error instead of a warning if something cannot be measured or the loss is not
            finite.
        resume: The step of the checkpoint from which an interrupted run continues. Later rows of the record are
            removed.
        first_step: The step of the given weights, if the record starts later than training.
        verbose: Whether to print the memory and time that the record requires to standard error.

    Attributes:
        path: The folder.
        plan: A sentence that states the memory and time that the record requires; empty on all ranks except 0.
        symmetries: The symmetries whose charges are recorded.
        measured: Whether the latest call of `step` or `end_epoch` measured a row.

    Raises:
        InputError: If the path exists, or another recorder writes to it; if the model has no trainable parameters, or
            sharded weights; if a layer is unknown; or if the reference batch has only one example.

    Warns:
        RecorderWarning: If something cannot be measured; each case is reported once.

    Example:
        >>> import tempfile
        >>> from dynascope.torch import Recorder
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> x, y = torch.randn(64, 2), torch.arange(64) % 2
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Recorder(
        ...         model, f"{folder}/run.zarr", reference=(x, y), optimizer=optimizer, verbose=False
        ...     ) as recorder:
        ...         for _ in range(10):
        ...             loss = torch.nn.functional.cross_entropy(model(x), y)
        ...             loss.backward()
        ...             optimizer.step()
        ...             recorder.step(loss=loss)
        ...             optimizer.zero_grad()
        ...     run = recorder.read()
        >>> run.sizes["step"], float(run["relative_displacement"][0])
        (10, 0.0)
    """

    def __init__(
        self,
        model: torch.nn.Module,
        path: str | PathLike[str],
        *,
        reference: Any,
        optimizer: torch.optim.Optimizer | None = None,
        criterion: Callable[[Any, Any], torch.Tensor] | None = None,
        preset: str | Sequence[str | Probe] = "standard",
        schedule: Schedule | Sequence[int] | int | str = "log",
        charges: bool | Sequence[Charge] = False,
        causes: bool = True,
        layers: Collection[str] = (),
        parameters: str | Collection[str] | Callable[[str], bool] | None = None,
        output: Callable[[Any], torch.Tensor] | None = None,
        max_overhead: Fraction | None = 0.05,
        kernel_examples: PositiveInt = 128,
        batch_size: PositiveInt | None = None,
        flipped: Any = None,
        memory: PositiveFloat = 1e9,
        strict: bool = False,
        resume: NonNegativeInt | None = None,
        first_step: NonNegativeInt = 0,
        verbose: bool = True,
    ):
        require(
            isinstance(model, torch.nn.Module),
            f"model is of type {type(model).__name__}",
            argument="model",
            value=type(model).__name__,
            remedy="give a torch.nn.Module",
        )
        require_whole_weights(unwrapped(model))  # on all ranks, so that none waits for another one
        self.path, self._optimizer = path, optimizer
        self._run: RunRecorder | None = None
        self._charges: WatchedCharges | None = None
        self.symmetries: Sequence[Charge] = ()
        self.plan, self.measured = "", False
        if _rank() > 0:
            return
        reader = ModuleReader(
            model,
            reference,
            layers=layers,
            selected=selection(parameters),
            output=output,
            kernel_examples=kernel_examples,
            memory=memory,
            criterion=criterion,
            batch_size=batch_size or CURVATURE_BATCH,
            flipped=flipped,
        )
        self._micro_batches = MicroBatchGradients(reader.gradients)
        inner = unwrapped(model)
        probes = list(probes_of(preset))
        if charges:
            require(
                resume is None,
                f"resume is {resume}, but charges cannot be resumed, because their laws require every step",
                argument="charges",
                value=resume,
                remedy="omit resume, and pass first_step to start a new record at another path",
            )
            alone = not isinstance(getattr(model, "_orig_mod", model), torch.nn.parallel.DistributedDataParallel)
            self._charges = watched_charges(inner, optimizer, charges, reader.inputs, causes=causes and alone)
            self.symmetries = self._charges.symmetries
            probes.append(charge_probe(self._charges))
        rates = self._learning_rates()
        theory = (
            {}
            if preset == "light"
            else nearest_theory(inner, reader.inputs, reader.targets, rates, batch_size, criterion)
        )
        if optimizer is not None and is_adam(optimizer) and CURVATURE in probes:
            probes.append(preconditioned_probe(reader, optimizer))
        try:
            self._run = RunRecorder(
                reader,
                path,
                probes=probes,
                schedule=as_schedule(schedule),
                max_overhead=max_overhead,
                strict=strict,
                resume=resume,
                first_step=first_step,
                verbose=verbose,
                learning_rates=rates,
                groups=self._groups(inner, reader),
                attributes={
                    **({} if self._charges is None else charge_attributes(self._charges)),
                    **self._training_attributes(batch_size, criterion),
                    **theory,
                    "model": type(inner).__name__,
                    "framework": f"torch {torch.__version__}",
                },
            )
        except BaseException:
            if self._charges is not None:
                self._charges.close()  # removes its hooks from the optimiser
            raise
        self.plan = self._run.plan

    def step(self, *, loss: torch.Tensor | float | None = None) -> None:
        """Count one step of the optimiser, and measure if a probe is due.

        Args:
            loss: The loss of the step. The loss is not read before the next measurement, so a GPU does not wait.
        """
        if self._run is not None:
            self.measured = self._run.advance(loss, self._learning_rates())
            self._micro_batches.clear()

    def micro_batch(self, size: PositiveInt) -> None:
        """Read the gradient of a micro-batch, for the gradient noise scale.

        Call this method after each `backward()` of an accumulated step, with the number of examples, which must be the
        same for all micro-batches. Gradients are read only if the step will be measured.
        """
        if self._run is not None and self._run.next_is_due:
            self._micro_batches.add(size)
            if self._micro_batches.count > 1:
                self._run.keep_micro_batches(self._micro_batches.result())

    def add_loss(self, loss: torch.Tensor | float) -> None:
        """Add a loss to the next row, for training loops in which the loss is not available when `step` is called."""
        if self._run is not None:
            self._run.add_loss(loss)

    def skip_to(self, step: PositiveInt) -> None:
        """Measure the weights of a later step, for runs whose intermediate steps are not available."""
        if self._run is not None:
            self.measured = self._run.skip_to(step, self._learning_rates())

    def end_epoch(self) -> None:
        """Count one epoch, and measure if a probe is due at the end of an epoch."""
        if self._run is not None:
            self.measured = self._run.end_epoch(self._learning_rates())

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return 0 if self._run is None else self._run.step

    @property
    def epochs(self) -> int:
        """The number of finished epochs so far; in a resumed run, set this number to that of the checkpoint."""
        return 0 if self._run is None else self._run.epoch

    @epochs.setter
    def epochs(self, number: NonNegativeInt) -> None:
        if self._run is not None:
            self._run.epoch = number

    def scalars(self) -> dict[str, float]:
        """Return the finite values of the latest row by name, such as `weight_norm/0.weight`, for loggers.

        The names suit TensorBoard, Weights & Biases, MLflow and Trackio: an arrow in a label becomes "to", and any
        other character besides letters, digits, spaces, `_`, `-`, `.` and `/` becomes an underscore.
        """
        return {} if self._run is None else self._run.scalars()

    def flush(self) -> None:
        """Write the rows that are still in memory, for example when you save a checkpoint."""
        if self._run is not None:
            self._run.flush()

    def read(self) -> Any:
        """Return the record so far as an `xarray.Dataset`; None on all ranks except 0."""
        return None if self._run is None else self._run.read()

    def close(self) -> None:
        """Measure the last step unless it was measured, write all rows, and release the record."""
        if self._run is not None:
            self._run.close(self._learning_rates())
        if self._charges is not None:
            self._charges.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _learning_rates(self) -> list[float]:
        return [] if self._optimizer is None else [float(group["lr"]) for group in self._optimizer.param_groups]

    def _training_attributes(self, batch_size: int | None, criterion: Any) -> dict[str, Any]:
        name = "" if self._optimizer is None else type(self._optimizer).__name__
        groups = [] if self._optimizer is None else self._optimizer.param_groups
        return training_attributes(name, groups, batch_size=batch_size, criterion=criterion)

    def _groups(self, model: torch.nn.Module, reader: ModuleReader) -> list[int]:
        groups = [] if self._optimizer is None else self._optimizer.param_groups
        place = {id(each): k for k, group in enumerate(groups) for each in group["params"]}
        found = dict(model.named_parameters())
        return [place.get(id(found[name]), -1) for name in reader.weights()]


def _rank() -> int:
    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0
