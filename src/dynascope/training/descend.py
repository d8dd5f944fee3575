"""Training by discrete steps of an optimiser, on all data or in batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import equinox as eqx
import numpy as np
import optax
from annotated_types import Interval

from dynascope.flows.ensemble import Ensemble, Rates, gather
from dynascope.flows.progress import report_progress
from dynascope.protocols import Learnable, Network
from dynascope.training.batches import Batches, SaveSteps, chosen_steps, sampler
from dynascope.training.checkpoint import Checkpoint, CheckpointFile, digest
from dynascope.training.loop import one_step, train
from dynascope.training.losses import Loss, LossName
from dynascope.training.optimizers import chosen_optimizer, name_of
from dynascope.training.result import Probed, observed
from dynascope.training.specification import Run, specified
from dynascope.training.statistics import StepStatistic
from dynascope.validation import checked, require, require_function
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["Descent", "descend"]

Probe = Callable[[Any], Mapping[str, tuple[Sequence[str], Any]]]


@checked
@dataclasses.dataclass(frozen=True)
class Descent:
    """Training by discrete optimiser steps, as the `method` of `observe` and `training.descend`.

    Attributes:
        optimizer: "sgd"; a function from a learning rate to an optax transformation, such as `optax.adam`; or a
            transformation, such as `optax.adam(1e-3)`. The `update` of the transformation also receives the parameters,
            `value`, `grad` and `value_fn`, e.g. for line searches. If layers have different learning rates, these rates
            multiply the updates of the optimiser at learning rate one.
        learning_rate: η; a sequence of rates; a mapping from layers to rates; or a schedule, a JAX function of the
            number of updates. A layer is named by a weight array, or by a part of the network that contains weight
            arrays. None for an optimiser with its own learning rate; `time` is then the sum of the rates in the
            optimiser state, or the number of steps if the state contains no rate.
        steps: Number of steps.
        epochs: Number of passes over the data. Give either `steps` or `epochs`.
        loss: "squared", "cross_entropy", "exponential", "logistic", a function, or a `Loss` with label smoothing.
        batches: Batch size, or `Batches`; None for all samples.
        save: Number of recorded steps, spaced logarithmically from 0 to the last step; or the recorded steps
            themselves, such as `range(0, 1001, 10)`. If `epochs` is given, the unit is epochs. The default is 100
            steps, or every epoch.
        statistics: Additional quantities to record: name → (JAX function of the network, or of the network, inputs and
            targets; names of the axes of its value). `Total`, `Largest`, `Latest`, `Sampled` and `Recursion` instead
            accumulate a quantity at every step, in memory that does not grow with the number of steps.
        probe: A function of the network that is called at recorded steps, outside the compiled program. The probe
            returns {name: (names of the axes, value)}, or the result of a function of `dynascope.probes`. The length of
            a value may change between steps; shorter values are padded with NaN.
        test: Held-out samples on which `test_loss` and `test_accuracy` are recorded. For a list of tasks, one set of
            samples per task.
        reference: Samples for statistics that are functions of (network, inputs, targets); None for the training
            samples.
        compute_dtype: "bfloat16" to compute outputs and gradients of float32 weights in bfloat16; None for the
            precision of the weights.
        checkpoint: A file that stores the state of the run, or a `Checkpoint`. If the file exists, the run resumes from
            it.

    Raises:
        InputError: If a field is out of range, or if two fields contradict each other.

    Notes:
        With the following equivalents, steps equal those of PyTorch up to rounding errors.

        - `torch.optim.SGD(lr=η, momentum=m, nesterov=…)` with dampening 0 is `optax.sgd(η, momentum=m, nesterov=…)`.
        - `torch.optim.AdamW(lr=η, weight_decay=λ)` is `optax.adamw(η, weight_decay=λ)`. In both, a step multiplies the
          weights by 1 − ηλ. The default of λ is 0.01 in PyTorch and 0.0001 in optax.
        - The weight decay of `torch.optim.SGD`, which is added to the gradient, is
          `optax.chain(optax.add_decayed_weights(λ), optax.sgd(η, momentum=m))`.
        - A parameter group corresponds to a separate learning rate for a layer, or to a mask on the weight decay.
        - `torch.nn.utils.clip_grad_norm_` is `optax.clip_by_global_norm`, except that PyTorch adds 1e-6 to the norm.
        - `torch.nn.CrossEntropyLoss(label_smoothing=s)` is `Loss("cross_entropy", label_smoothing=s)`.
        - `torch.nn.MSELoss` averages over outputs and lacks the factor ½, so its gradients are 2/c times those of
          "squared".

        `optax.MultiSteps` accumulates gradients in single precision. For double precision, give a function from a
        learning rate to a transformation as `optimizer`, and pass `accumulator_dtype` to `optax.MultiSteps` within it;
        the function is called within `jax.enable_x64`. `Batches(micro_size=…)` accumulates gradients in the precision
        of the weights.

    Example:
        >>> from dynascope import observe
        >>> from dynascope.networks import TwoLayer
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2), np.diag([2.0, 1.0]), name="two modes")
        >>> run = observe(task, TwoLayer(2, 4, 2), scale=0.1, method=Descent(optax.sgd(0.1), steps=300, save=[0, 300]))
        >>> run["loss"].to_numpy().round(4)
        array([1.2545, 0.    ])
    """

    optimizer: Literal["sgd"] | optax.GradientTransformation | optax.MultiSteps | Callable[[Any], Any] = "sgd"
    _: dataclasses.KW_ONLY
    learning_rate: Rates | Callable[[Any], Any] | None = None
    steps: PositiveInt | None = None
    epochs: PositiveInt | None = None
    loss: LossName | Callable[[Any, Any], Any] | Loss = "squared"
    batches: PositiveInt | Batches | None = None
    save: SaveSteps | None = None
    statistics: Mapping[str, tuple[Callable[..., Any], Sequence[str]] | StepStatistic] | None = None
    probe: Probe | None = None
    test: Learnable | Sequence[Learnable] | None = None
    reference: Learnable | None = None
    compute_dtype: Literal["bfloat16"] | None = None
    checkpoint: str | PathLike[str] | Checkpoint | None = None

    def __post_init__(self):
        chosen_optimizer(self.optimizer, self.learning_rate)
        require(
            (self.steps is None) != (self.epochs is None),
            f"steps is {self.steps} and epochs is {self.epochs}",
            argument="steps",
            value=self.steps,
            remedy="give exactly one of them",
        )
        Loss.of(self.loss)
        if self.probe is not None:
            require_function("probe", self.probe)
        require(
            self.probe is None or self.checkpoint is None,
            "probe cannot be combined with a checkpoint, which does not store the results of the probe",
            argument="probe",
            remedy="use statistics instead, or omit the checkpoint",
        )


@checked
def descend(
    task: Learnable | Sequence[Learnable],
    network: Network | Sequence[Network],
    method: Descent,
    *,
    scale: PositiveFloat | Sequence[float] | np.ndarray = 1.0,
    seed: Annotated[int, Interval(ge=0, lt=2**32)] = 0,
    return_networks: bool = False,
) -> Any:
    """Train a network by discrete optimiser steps from θ(0) = scale · weights.

    Plain descent is θ ← θ − η ∇L(θ) with the loss L = ½ E‖f(x) − y‖², a mean over samples and a sum over outputs.
    `method` selects other optimisers and losses. As η → 0, the curves against `time` converge to those of
    `gradient_flow`; the error of plain descent is O(η).

    Lists of networks, scales and learning rates form an ensemble of all combinations, which is trained in one compiled
    program. The record has a dimension `seed`, `scale` or `learning_rate` for each list, in this order.

    Curves have the dimension `step`. The variable `time` is the sum of the learning rates. If there are several rates,
    `time` also has the dimension `learning_rate`; if layers have different rates, `time` is the sum of the largest rate
    of each step. For a schedule, `applied_rate` is the rate of the last step before each recorded step, or zero if that
    step only accumulated gradients.

    A network may have a method `train_step_outputs`, which maps a batch to (outputs, new network). Training then uses
    this method and passes the running statistics, which are not weights, from step to step. All recorded quantities are
    measured in evaluation mode, on samples without augmentation.

    A network may have a method `sampled_outputs(x, key)`, such as that of a `Transformer` with resampled biases, which
    computes the outputs of a batch with random parts drawn from a key (`protocols.SampledNetwork`). Training then uses
    this method with one key per step. The key depends on the seed and the step, so resumed runs draw the same numbers.
    Ensemble members that share batches also share the key.

    A network may have a method `check_inputs(inputs)`, which raises `InputError` for inputs outside its domain, such as
    tokens outside the vocabulary. The method is called before compilation, because compiled programs check no values.

    Long runs are split into chunks of about half a second. After each chunk, the run can be interrupted and reports to
    `flows.progress_listener`. The chunks do not change the results. A program is compiled for each structure (shapes,
    statistics, optimiser) and reused by later calls with the same function objects; a new lambda is a new function.

    Args:
        task: The task to learn: a `Task`, or `Labelled` samples; a `Stream`, from which every step draws new samples;
            an `Expectation`; or a list of tasks of equal size, one for each network.
        network: An equinox module that maps a batch (n, …) to outputs (n, c), or a list of modules that differ only in
            their weights. The weights are float64 or float32, and their precision is used throughout.
        method: The optimiser, the number of steps, the loss, the batches and the recorded quantities.
        scale: Factor on the initial weights, or a sequence of factors, > 0.
        seed: Seed of the batches and of the augmentation.
        return_networks: Whether to also return the network with its final weights. The weights of an ensemble have the
            ensemble dimensions first.

    Returns:
        A record with the `loss` over all data, the `accuracy` if targets are classes, and each statistic, along `step`,
        `time` and, if epochs are counted, `epoch`. The loss of a stream is exact if the stream has an expectation in
        closed form; otherwise, the loss is a mean over 20 000 new samples at each recorded step. The attribute
        `loss_over` states how the loss was computed. If some members of an ensemble diverge, a warning lists them, and
        their curves end with NaN. The variables `diverged_step` (−1 for the other members) and `diverged_loss` record
        the divergence. With `return_networks`, the function returns the pair (record, network).

    Raises:
        InputError: If an argument is outside its domain.
        DivergenceError: If all members diverge, i.e. if their loss explodes, or if their loss or weights become
            non-finite.

    Example:
        >>> from dynascope.networks.two_layer import TwoLayer
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2), np.diag([2.0, 1.0]), name="two modes")
        >>> record = descend(task, TwoLayer(2, 4, 2), Descent(learning_rate=0.1, steps=300, save=[0, 300]), scale=0.1)
        >>> record["time"].to_numpy(), record["loss"].to_numpy().round(4)
        (array([ 0., 30.]), array([1.2545, 0.    ]))
    """
    optimizer, rates = chosen_optimizer(method.optimizer, method.learning_rate)
    first: Any = task[0] if isinstance(task, list | tuple) and task else task
    ensemble = _without_rate(gather(first, network, scale, rates), method.learning_rate)
    loss, batches = Loss.of(method.loss), Batches.of(method.batches)
    drawn = sampler(first, batches)
    run = specified(
        ensemble,
        task,
        method.test,
        method.reference,
        loss=loss,
        sampler=drawn,
        optimizer=optimizer,
        learning_rate=method.learning_rate,
        compute_dtype=method.compute_dtype,
        statistics=method.statistics,
        steps=chosen_steps(method.steps, method.epochs, method.save, drawn.per_epoch),
        seed=seed,
    )
    attributes = {
        "flow": "descent",
        "convention": loss.convention,
        "loss_function": loss.name,
        **({"label_smoothing": loss.label_smoothing} if loss.label_smoothing else {}),
        **({"over_outputs": loss.over_outputs} if loss.over_outputs != "sum" else {}),
        "optimizer": method.optimizer if isinstance(method.optimizer, str) else name_of(optimizer),
        "batch_size": batches.size,
        "batches": "independent" if batches.independent else "shared",
        "replacement": batches.replacement,
        "batch_seed": seed,
    }
    kept = None if method.checkpoint is None else _checkpoint(run, attributes, Checkpoint.of(method.checkpoint))
    probe = None if method.probe is None else Probed(run, method.probe)
    results, done = train(
        run, checkpoint=kept, progress=lambda *counts: report_progress(*counts, unit="steps"), probe=probe
    )
    return observed(run, results, done, attributes, probe=probe, return_networks=return_networks)


def _without_rate(ensemble: Ensemble, learning_rate: Any) -> Ensemble:
    """Return the ensemble with the name of the schedule in place of the learning rate.

    If the optimiser has its own learning rate, the settings of the record contain no learning rate.
    """
    if learning_rate is not None and not callable(learning_rate):
        return ensemble
    settings = {name: value for name, value in ensemble.settings.items() if name != "learning_rate"}
    if learning_rate is not None:
        settings["learning_rate"] = name_of(learning_rate)
    return dataclasses.replace(ensemble, settings=settings)


def _checkpoint(run: Run, attributes: Mapping[str, Any], checkpoint: Checkpoint) -> CheckpointFile:
    """Return the checkpoint file of a run, identified by its network, its task and the computations of a step."""
    ensemble, problem, steps = run.ensemble, run.problem, run.steps
    with ensemble.precision():
        program = one_step(run)
    within = eqx.filter((problem.schedule, problem.optimizer, problem.step_statistics), eqx.is_array)
    identity = {
        "network": digest(ensemble.weights, problem.frame),
        "task": digest(problem.data, problem.average, problem.sampler.stream),
        # Numbers inside functions, such as the rates of a schedule, are part of the program or of its constants.
        "setting": digest(
            attributes, ensemble.rates, steps.count, steps.recorded, *within, str(program), program.consts
        ),
    }
    return CheckpointFile(Path(checkpoint.path), ensemble, identity, checkpoint.seconds)
