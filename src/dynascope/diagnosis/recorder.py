"""Record features, kernels and weights of a JAX function while its parameters are trained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike
from typing import Any

import jax
import numpy as np
import xarray as xr

from dynascope.diagnosis.measurements.curvature import CURVATURE_BATCH
from dynascope.diagnosis.parameter_selection import selection
from dynascope.diagnosis.preset import probes_of
from dynascope.diagnosis.probe import Probe
from dynascope.diagnosis.run_recorder import RunRecorder
from dynascope.diagnosis.schedule import Schedule, as_schedule
from dynascope.diagnosis.training_settings import settings_of, training_attributes
from dynascope.diagnosis.tree_reader import TreeReader, WeightLayout
from dynascope.theory.regimes import OptimizerSettings
from dynascope.validation import checked, require_function
from dynascope.validation.bounded_scalars import Fraction, NonNegativeInt, PositiveFloat, PositiveInt

__all__ = ["Recorder"]


@checked
class Recorder:
    """Records a JAX training run: weights, gradients, features, neural collapse and the neural tangent kernel.

    Measurements run on a fixed reference batch with separately compiled functions; the functions that you compiled do
    not run again. The record is a growing folder that `dynascope report` turns into a page and that xarray can read at
    any time. For PyTorch, use `dynascope.torch.Recorder`.

    Parameters are the floating-point arrays of `params`. They are named by their paths in the tree, such as
    `layers.0.weight`, and recorded in the order of `jax.tree.leaves`, which sorts the keys of dictionaries.

    Call `step` after each update with the new parameters. A compiled step may reuse the memory of its arguments
    (`donate_argnums`), but not that of the parameters passed to the last `step` before `end_epoch` or `close`.

    Args:
        apply: (params, inputs) → outputs (n, c), or (outputs, {name: features}), for a batch of inputs in evaluation
            mode.
        params: The initial parameters, a tree of arrays.
        path: The folder of the record, which must not exist; by convention, the name ends in `.zarr`.
        reference: The reference batch: a pair of inputs and targets, a dictionary of inputs in which `labels` are the
            targets, or inputs alone. 100 to 1000 examples are enough.
        criterion: The loss, a function of outputs and targets that averages over examples, for the loss on the
            reference batch and for probes of the curvature; None to omit these.
        preset: "light", "standard" or "full", or a list of preset names, probe names and probes; see
            `diagnosis.probes_of`.
        schedule: When to measure: "log" for 16 rows per decade of steps, n for every n steps, "epochs" for the end of
            each epoch, a list of steps, or a schedule of `diagnosis`. Expensive probes have their own schedule.
        activations: (params, inputs) → {name: pre-activation (n, …, units)}; None to use the inputs of the activation
            functions of `jax.nn`, other than `gelu`, that `apply` calls outside loops and branches.
        features: (params, inputs) → {name: features (n, …)}, in addition to those that `apply` returns.
        layers: The names of the features to record, in this order; None for all.
        readout: The name of the weight matrix of the last linear layer, whose input is the last of the recorded
            features, for neural collapse; None to omit it.
        readout_bias: The name of the bias of the last linear layer; None if it has none.
        layout: The layout of weights: "inputs_outputs" for x @ W, as in flax, whose units are the last axis of weights
            and images; or "outputs_inputs" for W @ x, as in equinox, whose units are the first axis.
        parameters: Patterns of the names of recorded parameters, such as "encoder.*", or a function of the name; None
            for all parameters.
        max_overhead: The largest share of the run's time that measurements may take; None for no limit. Expensive
            probes that would exceed this share are skipped. The first ten seconds of measurements, the first snapshot
            and the next run of each probe are not limited.
        kernel_examples: Number of examples in the neural tangent kernel, taken from the start of the reference batch.
        batch_size: Number of examples per training step, which is stored for the diagnosis of the run and used for the
            batches whose curvature is measured; None if unknown, with batches of 32 for the curvature.
        flipped: The examples of the reference batch whose labels are known to be wrong, such as labels that you flipped
            to measure memorisation: a boolean mask of shape (n,), or indices; None if unknown.
        settings: The optimiser of training, for the diagnosis of the run; None if unknown. Its learning rate is
            recorded until `step` gets another one.
        memory: Bytes that the kernel may use, in addition to the model.
        strict: Whether to raise an error instead of a warning if something cannot be measured or the loss is not
            finite.
        resume: The step of the checkpoint from which an interrupted run continues. Later rows of the record are
            removed.
        first_step: The step of the given parameters, if the record starts later than training.
        verbose: Whether to print the memory and time that the record requires to standard error.

    Attributes:
        path: The folder.
        plan: A sentence that states the memory and time that the record requires.
        measured: Whether the latest call of `step` or `end_epoch` measured a row.

    Raises:
        InputError: If the path exists, or another recorder writes to it; if `params` has no parameters; if a layer or a
            readout is unknown; if a function fails on the reference batch; or if the reference batch has only one
            example.

    Warns:
        RecorderWarning: If something cannot be measured; each case is reported once.

    Example:
        >>> import equinox as eqx, jax, jax.numpy as jnp, tempfile
        >>> from dynascope import Recorder
        >>> model = eqx.nn.MLP(2, 2, width_size=16, depth=1, key=jax.random.key(0))
        >>> params, static = eqx.partition(model, eqx.is_inexact_array)
        >>> apply = lambda params, x: jax.vmap(eqx.combine(params, static))(x)
        >>> x = jax.random.normal(jax.random.key(1), (64, 2))
        >>> y = (x[:, 0] > 0).astype(int)
        >>> def loss_of(params):
        ...     log_probabilities = jax.nn.log_softmax(apply(params, x))
        ...     return -jnp.take_along_axis(log_probabilities, y[:, None], axis=1).mean()
        >>> update = jax.jit(lambda params, grads: jax.tree.map(lambda w, g: w - 0.1 * g, params, grads))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Recorder(
        ...         apply, params, f"{folder}/run.zarr", reference=(x, y), layout="outputs_inputs", verbose=False
        ...     ) as recorder:
        ...         for _ in range(10):
        ...             loss, grads = jax.value_and_grad(loss_of)(params)
        ...             params = update(params, grads)
        ...             recorder.step(params, loss=loss, gradients=grads, learning_rate=0.1)
        ...     run = recorder.read()
        >>> run.sizes["step"], run["parameter"].values[:2].tolist(), run["activation"].values.tolist()
        (10, ['layers.0.weight', 'layers.0.bias'], ['relu'])
    """

    def __init__(
        self,
        apply: Callable[[Any, Any], Any],
        params: Any,
        path: str | PathLike[str],
        *,
        reference: Any,
        criterion: Callable[[Any, Any], Any] | None = None,
        preset: str | Sequence[str | Probe] = "standard",
        schedule: Schedule | Sequence[int] | int | str = "log",
        activations: Callable[[Any, Any], Mapping[str, Any]] | None = None,
        features: Callable[[Any, Any], Mapping[str, Any]] | None = None,
        layers: Sequence[str] | None = None,
        readout: str | None = None,
        readout_bias: str | None = None,
        layout: WeightLayout = "inputs_outputs",
        parameters: Collection[str] | Callable[[str], bool] | None = None,
        max_overhead: Fraction | None = 0.05,
        kernel_examples: PositiveInt = 128,
        batch_size: PositiveInt | None = None,
        flipped: Any = None,
        settings: OptimizerSettings | None = None,
        memory: PositiveFloat = 1e9,
        strict: bool = False,
        resume: NonNegativeInt | None = None,
        first_step: NonNegativeInt = 0,
        verbose: bool = True,
    ):
        require_function("apply", apply)
        self.path, self.measured = path, False
        self._learning_rate: Any = np.nan if settings is None else settings.learning_rate
        optimizer, group = ("", None) if settings is None else settings_of(settings)
        self._reader = TreeReader(
            apply,
            params,
            reference,
            activations=activations,
            features=features,
            layers=layers,
            readout=readout,
            readout_bias=readout_bias,
            layout=layout,
            selected=selection(parameters),
            kernel_examples=kernel_examples,
            memory=memory,
            criterion=criterion,
            batch_size=batch_size or CURVATURE_BATCH,
            flipped=flipped,
        )
        self._run = RunRecorder(
            self._reader,
            path,
            probes=probes_of(preset),
            schedule=as_schedule(schedule),
            max_overhead=max_overhead,
            strict=strict,
            resume=resume,
            first_step=first_step,
            verbose=verbose,
            learning_rates=[self._learning_rate],
            groups=[0] * len(self._reader.weights()),
            attributes={
                **training_attributes(
                    optimizer, [] if group is None else [group], batch_size=batch_size, criterion=criterion
                ),
                "model": getattr(apply, "__name__", type(apply).__name__),
                "framework": f"jax {jax.__version__}",
            },
        )
        self.plan = self._run.plan

    def step(self, params: Any, *, loss: Any = None, gradients: Any = None, learning_rate: Any = None) -> None:
        """Count one update of the parameters, and measure if a probe is due.

        Args:
            params: The new parameters.
            loss: The loss of the step. The loss is not read before the next measurement, so an accelerator does not
                wait.
            gradients: The gradients of the step, a tree such as `jax.grad` returns; None to omit their norms.
            learning_rate: The learning rate of the step; None if it has not changed.
        """
        if learning_rate is not None:
            self._learning_rate = learning_rate
        self._reader.params, self._reader.current_gradients = params, gradients
        try:
            self.measured = self._run.advance(loss, [self._learning_rate])
        finally:
            self._reader.current_gradients = None
            self._reader.micro_batches.clear()

    def micro_batch(self, gradients: Any, size: PositiveInt) -> None:
        """Read the gradient of a micro-batch, for the gradient noise scale.

        Call this method for each micro-batch of an accumulated step, with the gradient of its mean loss and the number
        of examples, which must be the same for all micro-batches. Gradients are read only if the step will be measured.
        """
        if self._run.next_is_due:
            batches = self._reader.micro_batches
            batches.add(gradients, size)
            if batches.count > 1:
                self._run.keep_micro_batches(batches.result())

    def add_loss(self, loss: Any) -> None:
        """Add a loss to the next row, for training loops in which the loss is not available when `step` is called."""
        self._run.add_loss(loss)

    def end_epoch(self) -> None:
        """Count one epoch, and measure if a probe is due at the end of an epoch."""
        self.measured = self._run.end_epoch([self._learning_rate])

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return self._run.step

    def scalars(self) -> dict[str, float]:
        """Return the finite values of the latest row by name, such as `weight_norm/layers.0.weight`, for loggers.

        The names suit TensorBoard, Weights & Biases, MLflow and Trackio: an arrow in a label becomes "to", and any
        other character besides letters, digits, spaces, `_`, `-`, `.` and `/` becomes an underscore.
        """
        return self._run.scalars()

    def flush(self) -> None:
        """Write the rows that are still in memory, for example when you save a checkpoint."""
        self._run.flush()

    def read(self) -> xr.Dataset:
        """Return the record so far."""
        return self._run.read()

    def close(self) -> None:
        """Measure the last step unless it was measured, write all rows, and release the record."""
        self._run.close([self._learning_rate])

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
