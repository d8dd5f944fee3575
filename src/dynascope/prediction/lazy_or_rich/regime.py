"""Whether training of a network on data is lazy or rich."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np

from dynascope.networks.kinds import NETWORKS, NetworkKind
from dynascope.prediction.lazy_or_rich.answer import Regime, Turn, measured_reason
from dynascope.prediction.lazy_or_rich.labels import (
    LAZY,
    RICH,
    RUN_LAZY,
    RUN_RICH,
    UNSTABLE,
    Label,
    label_of,
    label_of_run,
)
from dynascope.prediction.lazy_or_rich.problem import Problem, problem_of
from dynascope.prediction.lazy_or_rich.theories import by_theory
from dynascope.prediction.lazy_or_rich.trained_kernel import STEPS, KernelMovement, kernel_movement
from dynascope.protocols import Network
from dynascope.tasks.as_task import TaskLike
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["regime"]

_TURNS = 6  # doublings of the output scale that are tried beyond the extrapolated one
_FARTHEST = 20  # doublings
_CROSS_ENTROPY = (
    "For the cross-entropy, the regime is that of a single run, and targets and outputs are no dials: the output scale "
    "is an inverse temperature. The dial is the scale of the initial weights."
)


@checked
def regime(
    task: TaskLike,
    network: Annotated[Network | NetworkKind, NETWORKS],
    *,
    scale: PositiveFloat | None = None,
    output_scale: PositiveFloat = 1.0,
    learning_rate: PositiveFloat | Sequence[PositiveFloat] | None = None,
    loss: Literal["squared", "cross_entropy"] = "squared",
    centred: bool = True,
    probe: bool | None = None,
    turns: bool = True,
    steps: PositiveInt | None = None,
    seconds: PositiveFloat = 60.0,
    seed: Seed = 0,
    width: PositiveInt = 50,
) -> Regime:
    """Tell whether training is lazy or rich, and how far the dial must be turned to change that.

    Training is lazy if the network stays close to its linearisation in the weights, and rich if it learns features. The
    definition is measured in training runs of α (f − f₀) on the targets, with the loss divided by α², at the given
    output scale α and at 2α. S is the distance 1 − ⟨K₀, K⟩/(‖K₀‖‖K‖) between the neural tangent kernels (NTK) at the
    start and when 90 % of the loss is gone, on at most 256 inputs.

    - "unstable": the loss exceeds 4 times its initial value;
    - "lazy": S ≤ 0.02 and S(α)/S(2α) ≥ 1.5, or S ≤ 0.002;
    - "rich": S ≥ 0.05 and S(α)/S(2α) < 2;
    - "delayed rich": rich at the end of training, with S at 90 % below a third of that;
    - "undecided" otherwise.

    A theory decides without training where it can: that of lazy training (`theory="kernel-regression"`), or one of
    small initial weights. Otherwise the network is trained briefly. With different learning rates η_l of the layers,
    the kernel is J diag(η) Jᵀ.

    Args:
        task: The data, as for `predict`. For a PyTorch module, the inputs can have any shape. Integer targets of a
            network with several outputs are classes, which the squared loss compares with one-hot rows.
        network: A network, as for `predict`, with its initial weights, or any PyTorch or equinox module. An equinox
            module maps one sample; a PyTorch module maps a batch and is evaluated in evaluation mode.
        scale: Factor on all initial weights and biases; by default 1 for a network with weights, and as for `predict`
            for a name.
        output_scale: α, the factor on the outputs.
        learning_rate: Learning rate of gradient descent, or one per layer; by default, gradient flow.
        loss: "squared" or "cross_entropy". The cross-entropy has no output scale; its label is that of a single run:
            lazy for S ≤ 0.01, rich for S ≥ 0.1. The dial is then the scale of the initial weights and biases.
        centred: Whether the initial outputs f₀ are subtracted. Without this, a large α first makes the network unlearn
            its own initial outputs. The cross-entropy is always that of the outputs themselves.
        probe: True to always measure, False to never train; by default, the network is trained if no theory decides.
        turns: Whether to search for a turn of the dial that changes the regime, by further training.
        steps: Largest number of steps of a training run; by default 3000 of an adaptive solver, or 10 000 of descent.
        seconds: Time limit of all training runs together.
        seed: Seed of the initial weights if the network is given by name or without dimensions.
        width: Number of hidden neurons of a network given by name.

    Returns:
        A `prediction.Regime`: label, the theory or measurement that decides, and the turns of the dial that change the
        regime. Print it for the answer in sentences.

    Raises:
        InputError: If an argument is outside its domain, if all targets are zero, or if targets and outputs have
            different shapes.

    References:
        L. Chizat, E. Oyallon, F. Bach, arXiv:1812.07956, for the output scale and centred outputs; the kernel distance:
        arXiv:2010.15110. The thresholds were set on 46 other training runs than those of the page "Lazy or rich?".

    Example:
        >>> from dynascope.networks import MLP
        >>> x = np.random.default_rng(0).normal(size=(20, 5))
        >>> found = regime((x, np.sign(x[:, :1] * x[:, 1:2])), MLP((5, 40, 1), activation="tanh"), output_scale=30.0)
        >>> found.label
        'lazy'
    """
    require(
        loss == "squared" or output_scale == 1,
        f"output_scale is {output_scale:g}, but it is an inverse temperature for the cross-entropy",
        argument="output_scale",
        value=output_scale,
        remedy="omit it, or use the squared loss",
    )
    deadline = time.monotonic() + seconds
    problem = problem_of(
        task,
        network,
        scale=scale,
        learning_rate=learning_rate,
        loss=loss,
        centred=centred,
        seed=seed,
        width=width,
    )
    case = None if probe is True else problem.case_at(output_scale)
    if case is not None:
        decision = by_theory(case)
        if decision is not None:
            other = "rich" if decision.label == "lazy" else "lazy"
            turn = () if decision.factor is None else (_turn(problem, other, decision.factor, None),)
            found = decision.label, decision.theory, decision.reason, decision.number, decision.threshold
            return Regime(*found, turns=turn if turns else ())
    if problem.network is None:
        require(
            probe is not True,
            "the task has no samples, so training cannot be measured",
            argument="task",
            remedy="give inputs and targets, or omit probe",
        )
        return Regime("undecided", "", "No theory decides, and the task has no samples on which to measure training.")
    if probe is False:
        return Regime("undecided", "", "No theory decides; use probe=True to measure training.")
    return _Measured(problem, output_scale, steps, deadline).answer(turns=turns)


class _Measured:
    """Training runs at the output scales α 2^k, or at the scales 2^(k/2) of the initial weights for the cross-entropy.

    Without biases, the two scales have the same effect on the initial outputs of a network of two layers.
    """

    def __init__(self, problem: Problem, output_scale: float, steps: int | None, deadline: float):
        assert problem.network is not None
        self._problem, self._network = problem, problem.network
        self._scale, self._deadline = output_scale, deadline
        self._is_flow = problem.rates is None
        self._steps = steps or STEPS["flow" if self._is_flow else "descent"]
        self._runs: dict[tuple[int, float], KernelMovement] = {}

    def run(self, doublings: int, speed: float = 1.0) -> KernelMovement:
        """Train at the k-th doubling of the dial, with learning rates multiplied by a factor."""
        key = doublings, speed
        if key not in self._runs:
            rates = self._problem.rates
            self._runs[key] = kernel_movement(
                self._network,
                self._problem.targets_at(self._scale * 2.0**doublings),
                rates=None if rates is None else speed * rates,
                is_flow=self._is_flow,
                steps=self._steps,
                deadline=self._deadline,
                init_scale=2.0 ** (doublings / 2) if self._is_single else 1.0,
            )
        return self._runs[key]

    def label(self, doublings: int, speed: float = 1.0) -> Label:
        """Return the label at the k-th doubling of the dial."""
        run = self.run(doublings, speed)
        if self._is_single:
            return "unstable" if run.movement.growth > UNSTABLE else label_of_run(run.movement.fitted)
        return label_of(run.movement, self.run(doublings + 1, speed).movement)

    @property
    def _is_single(self) -> bool:
        return self._problem.targets.ndim == 1

    @property
    def _lazy(self) -> float:
        return RUN_LAZY if self._is_single else LAZY

    @property
    def _rich(self) -> float:
        return RUN_RICH if self._is_single else RICH

    def answer(self, *, turns: bool) -> Regime:
        """Return the label, its reason and the turns of the dial."""
        run, label = self.run(0), self.label(0)
        S = run.movement.fitted  # noqa: N806
        ratio = math.nan if self._is_single or label == "unstable" else S / max(self.run(1).movement.fitted, 1e-300)
        notes = [*self._problem.notes, *([_CROSS_ENTROPY] if self._is_single else [])]
        if label == "unstable":
            reason = "The loss exceeds 4 times its initial value, so that gradient descent is unstable."
        elif math.isnan(S):
            reason = _cut_short("Training", run)
        elif math.isnan(ratio) and not self._is_single:
            other = _cut_short("Training at twice the output scale", self.run(1))
            reason = f"S is {S:.2g}, but cannot be compared. {other}"
        else:
            reason = measured_reason(label, S, ratio, single=self._is_single, centred=self._problem.centred)
            if run.removed < 0.9:
                notes.append(
                    f"Training removes {100 * run.removed:.2g} % of the loss in {run.steps} steps, so S is measured "
                    "when 90 % of this part is gone."
                )
        return Regime(
            label,
            "",
            reason,
            S,
            self._lazy if label == "lazy" else self._rich,
            kernel_distance=S,
            ratio=ratio,
            final_kernel_distance=run.movement.final,
            hamming_distance=run.flips,
            turns=tuple(self._turns(label)) if turns else (),
            notes=tuple(notes),
        )

    def _turns(self, label: Label) -> Iterator[Turn]:
        if label == "unstable":
            yield from self._slower()
            return
        distance = self.run(0).movement.fitted
        if math.isnan(distance) or distance == 0:  # zero if the network is linear in its weights
            return
        if label in ("rich", "delayed rich", "undecided"):
            yield from self._search(+1, ("lazy",))
        if label in ("lazy", "undecided"):
            yield from self._search(-1, ("rich", "delayed rich"))

    def _search(self, direction: int, wanted: tuple[Label, ...]) -> Iterator[Turn]:
        """Turn the dial in one direction, from where S is expected to cross the threshold."""
        distance = max(self.run(0).movement.fitted, 1e-12)
        needed = distance / self._lazy if direction > 0 else self._rich / distance
        first = max(math.ceil(math.log(max(needed, 1.0), 4)), 1)
        for doublings in range(first, min(first + _TURNS, _FARTHEST)):
            if time.monotonic() > self._deadline:
                return
            found = self.label(direction * doublings)
            if found in wanted:
                distance = self.run(direction * doublings).movement.fitted
                factor = 2.0 ** (direction * doublings)
                if self._is_single:
                    yield Turn(found, init_scale=math.sqrt(factor), kernel_distance=distance)
                else:
                    yield _turn(self._problem, found, factor, distance)
                return

    def _slower(self) -> Iterator[Turn]:
        """Try smaller learning rates, from half the rate at which the initial kernel makes descent unstable."""
        kernel = self._network.kernel(self._network.start, self._problem.rates)
        samples = len(kernel)
        side = kernel.reshape(samples * (kernel.shape[1] if kernel.ndim == 4 else 1), -1)
        sharpest = float(np.linalg.eigvalsh(side)[-1]) / samples
        speed = min(1 / max(sharpest, 1e-300), 0.5)
        for _ in range(_TURNS):
            if time.monotonic() > self._deadline:
                return
            found = self.label(0, speed)
            if found != "unstable":
                yield Turn(found, learning_rate=speed, kernel_distance=self.run(0, speed).movement.fitted)
                return
            speed /= 2


def _cut_short(training: str, run: KernelMovement) -> str:
    limit, remedy = f"{run.steps} steps", "steps or the learning rate"
    if run.out_of_time:
        limit, remedy = f"the time limit ({limit})", "seconds"
    return f"{training} removes only {100 * run.removed:.2g} % of the loss within {limit}; increase {remedy}."


def _turn(problem: Problem, label: Label, factor: float, distance: float | None) -> Turn:
    init_scale = None if problem.degree is None else factor ** (1 / problem.degree)
    return Turn(label, factor, init_scale, kernel_distance=distance)
