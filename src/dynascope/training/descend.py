"""Descent: training by discrete steps of an optimiser, on the whole data or on batches."""

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
    """Discrete steps of an optimiser, as a way to train: the `method` of `observe` and of `training.descend`.

    Attributes:
        optimizer: "sgd"; a function from a learning rate to an optax transformation, such as `optax.adam`; or a
            transformation, such as `optax.adam(1e-3)`. Its `update` is given the parameters and `value`, `grad` and
            `value_fn`, as line searches and methods with energies need them. Layer rates multiply the updates of the
            optimiser at rate one.
        learning_rate: η, or several, or one rate for each layer as a mapping from the name of a weight array (or of a
            part of the network that holds some) to its rate, or a schedule, a JAX function of the number of updates.
            None with an optimiser that has its own; `time` then sums the rates in its state, and counts steps where its
            state has none.
        steps: Number of steps.
        epochs: Number of passes over the data, instead of steps.
        loss: "squared", "cross_entropy", "exponential", "logistic", a function, or a `Loss` with label smoothing.
        batches: Number of samples in a step, or `Batches`; None for all.
        save: Number of steps at which to record, spread logarithmically from 0 to the last, or these steps, such as
            `range(0, 1001, 10)`; with `epochs`, the same in epochs. By default 100 steps, or every epoch.
        statistics: Further quantities to record: name → (JAX function of the network, or of the network, inputs and
            targets; names of the axes of its value). Or name → `Total`, `Largest`, `Latest`, `Sampled` or `Recursion`,
            which accumulate a quantity at every step, in memory that does not grow with the steps.
        probe: A function of the network, called at recorded steps outside of the compiled program, with the result
            {name: (names of the axes, value)}, or that of a function of `dynascope.probes`. A value may have another
            length each time; shorter ones are filled up with NaN.
        test: Held-out samples, of which `test_loss` and `test_accuracy` are recorded; one for each of several tasks.
        reference: Samples for statistics that take (network, inputs, targets); None for the training samples.
        compute_dtype: "bfloat16" to compute outputs and gradients of float32 weights in that type.
        checkpoint: A file in which the state is kept, and from which the run goes on if it exists; or a `Checkpoint`.

    Raises:
        InputError: A field is outside its domain, or two contradict each other.

    Notes:
        Steps equal those of PyTorch, to rounding, with these names. SGD with momentum m and Nesterov's variant,
        `optax.sgd(η, momentum=m, nesterov=…)`, is `torch.optim.SGD(lr=η, momentum=m, nesterov=…)` with dampening 0.
        `optax.adamw(η, weight_decay=λ)` is `torch.optim.AdamW(lr=η, weight_decay=λ)`, whose default is λ = 0.01 where
        optax has 0.0001; both shrink weights by ηλ. The weight decay of `torch.optim.SGD`, which is added to the
        gradient, is `optax.chain(optax.add_decayed_weights(λ), optax.sgd(η, momentum=m))`. Rates of layers, and a mask
        of the weight decay, are parameter groups. `torch.nn.utils.clip_grad_norm_` is `optax.clip_by_global_norm` but
        for the 1e-6 that it adds to the norm. The cross-entropy is that of
        `torch.nn.CrossEntropyLoss(label_smoothing=s)`; `torch.nn.MSELoss` averages over outputs and has no factor ½, so
        its gradients are 2/c of the squared loss.

        `optax.MultiSteps` adds up gradients in single precision, unless it is given an `accumulator_dtype` within
        `jax.enable_x64`, where a function from a rate to an optimiser is called. `Batches(micro_size=…)` needs neither.

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
            remedy="give one of the two",
        )
        Loss.of(self.loss)
        if self.probe is not None:
            require_function("probe", self.probe)
        require(
            self.probe is None or self.checkpoint is None,
            "a probe is given with a checkpoint, which does not keep what it finds",
            argument="probe",
            remedy="give statistics, or no checkpoint",
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
    """Train by discrete steps, θ ← θ − η ∇L(θ) or those of another optimiser, from θ(0) = scale · (the weights).

    The loss is L = ½ E‖f(x) − y‖² (mean over samples, sum over outputs) or another. Lists of networks, scales and
    learning rates make an ensemble of all combinations, trained in one compiled program; their dimensions in the
    record are `seed`, `scale`, `learning_rate`, in this order, each present if a list was given. As η → 0 the curves
    against `time` approach those of `gradient_flow`, at the rate O(η) for plain descent.

    The dimension of the curves is `step`; `time`, the sum of the learning rates, is a variable, over (learning_rate,
    step) when there are several rates, and that of the largest rate when layers have their own. Of a schedule the rate
    of the last step before each recorded one is `applied_rate`, zero at a step that only accumulated.

    In training a network with a method `train_step_outputs`, from a batch to (outputs, new network), is used by it,
    and its running statistics are carried from step to step; they are no weights. What is recorded is measured in
    evaluation, on samples that are not augmented. Long runs are made in pieces of about half a second, so that an
    interrupt ends them, and `flows.progress_listener` reports them, with the same numbers as in one.

    A program is compiled for each structure (shapes, statistics, optimiser) and found again at the next call; pass
    the same function objects, not new lambdas, to benefit.

    Args:
        network: An equinox module, a function of a batch (n, …) with outputs (n, c), with float64 or float32 weights,
            whose precision is used throughout; or a list of modules that differ only in their weights.
        task: What it learns: a `Task`, or `Labelled` samples; a `Stream`, of which every step draws a batch of fresh
            samples; an `Expectation`; or a list of tasks of equal sizes, one for each network.
        method: The optimiser, the number of steps, the loss, the batches, and what to record.
        scale: Factor, or factors, on the initial weights.
        seed: Seed of the batches and of augmentation.
        return_networks: Also return the network with its final weights; those of an ensemble have its dimensions in
            front.

    Returns:
        The record: `loss` (of all data), `accuracy` where there are classes, and each statistic along `step`, `time`,
        and `epoch` where they are counted. The loss of a stream is exact where it has an expectation, and else a mean
        over 20 000 samples drawn at each recorded step; the attribute `loss_over` says which. Where members of an
        ensemble diverged, their curves end with NaN, and `diverged_step` (−1 for the others) and `diverged_loss` tell
        where; a warning names them. With `return_networks`, the pair of the record and the network.

    Raises:
        InputError: An argument is outside its domain.
        DivergenceError: The loss or a weight of every member left the finite numbers, or the loss exploded.

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
    """The ensemble whose record names the schedule, or says nothing of a rate that is the optimiser's own."""
    if learning_rate is not None and not callable(learning_rate):
        return ensemble
    settings = {name: value for name, value in ensemble.settings.items() if name != "learning_rate"}
    if learning_rate is not None:
        settings["learning_rate"] = name_of(learning_rate)
    return dataclasses.replace(ensemble, settings=settings)


def _checkpoint(run: Run, attributes: Mapping[str, Any], checkpoint: Checkpoint) -> CheckpointFile:
    """The checkpoint of a run, identified by its network, its task, and all that a step computes."""
    ensemble, problem, steps = run.ensemble, run.problem, run.steps
    with ensemble.precision():
        program = one_step(run)
    within = eqx.filter((problem.schedule, problem.optimizer, problem.step_statistics), eqx.is_array)
    identity = {
        "network": digest(ensemble.weights, problem.frame),
        "task": digest(problem.data, problem.average, problem.sampler.stream),
        # Numbers within functions, such as the rates of a schedule, are in the program or among its constants.
        "setting": digest(
            attributes, ensemble.rates, steps.count, steps.recorded, *within, str(program), program.consts
        ),
    }
    return CheckpointFile(Path(checkpoint.path), ensemble, identity, checkpoint.seconds)
