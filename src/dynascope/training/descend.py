"""Descent: training by discrete steps of an optimiser, on the whole data or on batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import numpy as np
import optax

from dynascope.arguments import require, require_choice, require_function, require_integer, require_positive
from dynascope.flows.ensemble import Ensemble, gather
from dynascope.flows.progress import report_progress
from dynascope.protocols import Learnable, Network
from dynascope.training.batches import chosen_batches, chosen_steps
from dynascope.training.checkpoint import Checkpoint, digest
from dynascope.training.loop import one_step, train
from dynascope.training.losses import LossName, chosen_loss
from dynascope.training.optimizers import chosen_optimizer, name_of
from dynascope.training.result import Probed, observed
from dynascope.training.specification import Run, specified
from dynascope.training.statistics import StepStatistic

__all__ = ["descend"]

Probe = Callable[[Any], Mapping[str, tuple[Sequence[str], Any]]]


def descend(
    network: Network | Sequence[Network],
    task: Learnable | Sequence[Learnable],
    *,
    learning_rate: float | Sequence[float] | np.ndarray | Mapping[str, float] | Callable[[Any], Any] | None = None,
    steps: int | None = None,
    epochs: int | None = None,
    scale: float | Sequence[float] | np.ndarray = 1.0,
    loss: LossName | Callable[[Any, Any], Any] = "squared",
    label_smoothing: float = 0.0,
    over_outputs: Literal["sum", "mean"] = "sum",
    optimizer: Literal["sgd"] | optax.GradientTransformation | optax.MultiSteps | Callable[[Any], Any] = "sgd",
    batch_size: int | None = None,
    micro_batch_size: int | None = None,
    batches: Literal["shared", "independent"] = "shared",
    replacement: bool = False,
    augmentation: Callable[[Any, Any], Any] | None = None,
    test: Learnable | Sequence[Learnable] | None = None,
    reference: Learnable | None = None,
    record_steps: int | Sequence[int] | np.ndarray | None = None,
    record_epochs: Sequence[int] | np.ndarray | None = None,
    statistics: Mapping[str, tuple[Callable[..., Any], Sequence[str]]] | None = None,
    step_statistics: Mapping[str, StepStatistic] | None = None,
    probe: Probe | None = None,
    compute_dtype: Literal["bfloat16"] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    progress: Callable[[int, int], Any] | None = None,
    seed: int = 0,
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
    interrupt ends them, with the same numbers as in one.

    A program is compiled for each structure (shapes, statistics, optimiser) and found again at the next call; pass
    the same function objects, not new lambdas, to benefit.

    Args:
        network: An equinox module, a function of a batch (n, …) with outputs (n, c), with float64 or float32 weights,
            whose precision is used throughout; or a list of modules that differ only in their weights.
        task: What it learns: a `Task`, or `Labelled` samples; a `Stream`, of which every step draws a batch of fresh
            samples; an `Expectation`; or a list of tasks of equal sizes, one for each network.
        learning_rate: η, or several, or one rate for each layer as a mapping from the name of a weight array (or of a
            part of the network that holds some) to its rate, or a schedule, a JAX function of the number of updates.
            None with an optimiser that has its own; `time` then sums the rates that its state tells, and counts
            steps where it tells none.
        steps: Number of steps.
        epochs: Number of passes over the data, instead of steps.
        scale: Factor, or factors, on the initial weights.
        loss: "squared"; "cross_entropy", −Σ_k y_k log softmax(f)_k; "exponential" or "logistic", of the margin y f of
            a single output with targets −1 and 1, or summed over the margins f_y − f_k of several; or a JAX function
            of outputs and targets with one value for each sample, or for each entry of the outputs.
        label_smoothing: s, where the cross-entropy has targets (1 − s) y + s/c.
        over_outputs: Whether the values of a sample are summed or averaged over outputs.
        optimizer: "sgd"; a function from a learning rate to an optax transformation, such as `optax.adam`; or a
            transformation. Its `update` is given the parameters and `value`, `grad` and `value_fn`, as line searches
            and methods with energies need them. Layer rates multiply the updates of the optimiser at rate one.
        batch_size: Samples in a step; None for all. A stream needs one.
        micro_batch_size: Samples of which the gradient is computed at a time, a divisor of the batch; None for all. The
            gradient of the batch is the mean of theirs, which takes less memory and, where they stay in a core's cache,
            less time. Batch normalisation is that of the micro-batch.
        batches: Whether the members of an ensemble see the same batches, or each its own.
        replacement: Whether each sample of a batch is drawn from all. Otherwise the data are shuffled anew for each
            epoch, and what does not fill a batch at its end is left out.
        augmentation: A JAX function of a random key and the inputs of a batch, with new inputs of the same shape, such
            as `tasks.CropAndFlip()`.
        test: Held-out samples, of which `test_loss` and `test_accuracy` are recorded; one for each of several tasks.
        reference: Samples for statistics that take (network, inputs, targets); None for the training samples.
        record_steps: Number of steps at which to record, spread logarithmically from 0 to the last (None for 100), or
            these steps, such as `range(0, 1001, 10)`.
        record_epochs: Epochs after which to record, 0 for the start, instead of steps.
        statistics: Further quantities to record: name → (JAX function of the network, or of the network, inputs and
            targets; names of the axes of its value).
        step_statistics: What is accumulated at every step: name → `Total`, `Largest`, `Latest`, `Sampled` or
            `Recursion`, in memory that does not grow with the steps.
        probe: A function of the network, called at recorded steps outside of the compiled program, with the result
            {name: (names of the axes, value)}, or that of a function of `dynascope.probes`. A value may have another
            length each time; what it lacks to the longest is NaN.
        compute_dtype: "bfloat16" to compute outputs and gradients of float32 weights in that type.
        checkpoint: A file in which the state is kept, and from which the run goes on if it exists.
        checkpoint_seconds: Time after which the file is written again; it also is at an interrupt and at the end.
        progress: Called with the number of steps done and of all, about twice a second; see `flows.progress_listener`.
        seed: Seed of the batches and of augmentation.
        return_networks: Also return the network with its final weights; those of an ensemble have its dimensions in
            front.

    Returns:
        The record: `loss` (of all data), `accuracy` where there are classes, and each statistic along `step`, `time`,
        and `epoch` where there are any. The loss of a stream is exact where it has an expectation, and else a mean over
        20 000 samples drawn at each recorded step; the attribute `loss_over` says which. Where members of an ensemble
        diverged, their curves end with NaN, and `diverged_step` (−1 for the others) and `diverged_loss` tell where;
        a warning names them. With `return_networks`, the pair of the record and the network.

    Raises:
        InputError: An argument is outside its domain.
        DivergenceError: The loss or a weight of every member left the finite numbers, or the loss exploded.

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
        `jax.enable_x64`, where a function from a rate to an optimiser is called. `micro_batch_size` needs neither.

    Example:
        >>> from dynascope.networks.two_layer import TwoLayer
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2), np.diag([2.0, 1.0]), name="two modes")
        >>> record = descend(TwoLayer(2, 4, 2), task, steps=300, learning_rate=0.1, scale=0.1, record_steps=[0, 300])
        >>> record["time"].to_numpy(), record["loss"].to_numpy().round(4)
        (array([ 0., 30.]), array([1.2545, 0.    ]))
    """
    require_integer(least=0, most=2**32 - 1, seed=seed)
    for name, function in (("probe", probe), ("progress", progress)):
        if function is not None:
            require_function(name, function)
    require_choice("return_networks", return_networks, (True, False))
    require(
        checkpoint is None or isinstance(checkpoint, str | PathLike),
        f"checkpoint is {checkpoint!r}",
        argument="checkpoint",
        value=str(checkpoint),
        remedy="give the name of a file",
    )
    require_positive(checkpoint_seconds=checkpoint_seconds)
    require(
        probe is None or checkpoint is None,
        "a probe is given with a checkpoint, which does not keep what it finds",
        argument="probe",
        remedy="give statistics, or no checkpoint",
    )
    chosen, rates = chosen_optimizer(optimizer, learning_rate)
    first: Any = task[0] if isinstance(task, list | tuple) and task else task
    ensemble = _without_rate(gather(network, first, scale, rates), learning_rate)
    drawn = chosen_batches(
        first, batch_size, micro_batch_size, batches, replacement=replacement, augmentation=augmentation
    )
    counted = chosen_steps(steps, epochs, record_steps, record_epochs, drawn.per_epoch)
    measured = chosen_loss(loss, label_smoothing, over_outputs)
    run = specified(
        ensemble,
        task,
        test,
        reference,
        loss=measured,
        batches=drawn,
        optimizer=chosen,
        learning_rate=learning_rate,
        compute_dtype=compute_dtype,
        statistics=statistics,
        step_statistics=step_statistics,
        steps=counted,
        seed=int(seed),
    )
    attributes = {
        "flow": "descent",
        "convention": measured.convention,
        "loss_function": measured.name,
        **({"label_smoothing": label_smoothing} if label_smoothing else {}),
        **({"over_outputs": over_outputs} if over_outputs != "sum" else {}),
        "optimizer": optimizer if isinstance(optimizer, str) else name_of(chosen),
        "batch_size": batch_size,
        "batches": batches,
        "replacement": replacement,
        "batch_seed": seed,
    }
    kept = None if checkpoint is None else _checkpoint(run, attributes, Path(checkpoint), checkpoint_seconds)
    host = None if probe is None else Probed(run, probe)

    def told(done: int, planned: int) -> None:
        if progress is not None:
            progress(done, planned)
        report_progress(done, planned, "steps")

    results, done = train(run, checkpoint=kept, progress=told, probe=host)
    return observed(run, results, done, attributes, probe=host, return_networks=return_networks)


def _without_rate(ensemble: Ensemble, learning_rate: Any) -> Ensemble:
    """The ensemble whose record names the schedule, or says nothing of a rate that is the optimiser's own."""
    if learning_rate is not None and not callable(learning_rate):
        return ensemble
    settings = {name: value for name, value in ensemble.settings.items() if name != "learning_rate"}
    if learning_rate is not None:
        settings["learning_rate"] = name_of(learning_rate)
    return dataclasses.replace(ensemble, settings=settings)


def _checkpoint(run: Run, attributes: Mapping[str, Any], path: Path, seconds: float) -> Checkpoint:
    """The checkpoint of a run, identified by its network, its task, and all that a step computes."""
    ensemble, problem, steps = run.ensemble, run.problem, run.steps
    with ensemble.precision():
        program = one_step(run)
    within = eqx.filter((problem.schedule, problem.optimizer, problem.step_statistics), eqx.is_array)
    identity = {
        "network": digest(ensemble.weights, problem.frame),
        "task": digest(problem.data, problem.average, problem.batches.stream),
        # Numbers within functions, such as the rates of a schedule, are in the program or among its constants.
        "setting": digest(
            attributes, ensemble.rates, steps.count, steps.recorded, *within, str(program), program.consts
        ),
    }
    return Checkpoint(path, ensemble, identity, seconds)
