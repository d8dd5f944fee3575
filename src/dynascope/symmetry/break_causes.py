"""Why a conservation law is broken: tests of the numbers that each step leaves for each part of a symmetry."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.symmetry.charge import Charge
from dynascope.symmetry.followed import parameter_paths
from dynascope.symmetry.step_rules import StepRule, step_rule

__all__ = ["Cause", "Evidence", "causes_of"]

_FITS = 1e-2  # of what is to be explained, a cause leaves less than this
_STILL = 1e-6  # times the slopes of the part that has most: one with less is taken to be at rest
_FEWEST = 10  # numbers from which a factor is found
_UNEQUAL = 0.1  # what a factor is away from one, to be called another

_OF_STEPS = (
    "frozen layer",
    "another rule of momentum",
    "weight decay of its own",
    "clipping by tensor",
    "learning rate of its own",
    "clipping by value",
    "another momentum",
    "preconditioner or another rule",
)
_OF_GRADIENTS = (
    "wrong backward pass",
    "elementwise operation inside",
    "penalty in the loss",
    "norm: its ε, statistics or backward pass",
)


@dataclasses.dataclass(frozen=True)
class Cause:
    """A cause of a broken law, and what its test said.

    Attributes:
        name: What may be wrong.
        supported: Whether the test speaks for it.
        said: What the test found, with its number.
        paths: The parameters that it names; empty if it does not speak for the cause.
    """

    name: str
    supported: bool
    said: str
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {' '.join(self.paths)}" if self.supported else f"no {self.name}"


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What was recorded of steps, in 64 bits; of shape (step, charge, part) or, from `gradient_norm` on, (step, layer).

    Attributes:
        symmetries: The symmetries, whose charges stand one after the other.
        part_charge: θ_AᵀGθ_A.
        part_decay: What it contributes to the pull for each unit of decay.
        part_slope: θ_AᵀG∇L.
        part_slope_rounding: What rounding does to it.
        part_pull: θ_AᵀGg′ of the gradient that the update implies.
        part_pull_rounding: What rounding does to it.
        gradient_norm: ‖∇L‖ of each parameter.
        gradient_largest: Its largest entry.
        update_norm: ‖d‖ of each parameter.
        clipping: How far each step is from one that is clipped by value, relative.
        change: How far the gradient that each step implies is from the gradient, relative.
        first_change: That of the first step.
        change_by_rule: The change if another rule had made the step, shape (step, layer, rule).
        changed_between: Whether weights had been changed since the step before; None if nobody looked.
    """

    symmetries: tuple[Charge, ...]
    part_charge: np.ndarray
    part_decay: np.ndarray
    part_slope: np.ndarray
    part_slope_rounding: np.ndarray
    part_pull: np.ndarray
    part_pull_rounding: np.ndarray
    gradient_norm: np.ndarray
    gradient_largest: np.ndarray
    update_norm: np.ndarray
    clipping: np.ndarray
    change: np.ndarray
    first_change: np.ndarray
    change_by_rule: np.ndarray
    changed_between: np.ndarray | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters along `layer`."""
        return parameter_paths(self.symmetries)

    def rows(self, number: int) -> slice:
        """The charges of a symmetry."""
        start = sum(each.size for each in self.symmetries[:number])
        return slice(start, start + self.symmetries[number].size)

    def rule(self, path: str) -> StepRule:
        """How the updates of a parameter follow from its gradient, by what all its symmetries say."""
        names = ("part_slope", "part_pull", "part_decay", "part_pull_rounding")
        own = [
            (self.rows(number), place)
            for number, each in enumerate(self.symmetries)
            for place, part in enumerate(each.parts)
            if part.path == path
        ]
        series = (np.concatenate([getattr(self, name)[:, rows, place] for rows, place in own], 1) for name in names)
        layer = self.paths.index(path)
        names = ("gradient_norm", "gradient_largest", "update_norm", "clipping", "change", "first_change")
        return step_rule(*series, *(getattr(self, name)[:, layer] for name in (*names, "change_by_rule")))

    def factors(self) -> dict[str, float]:
        """By which factor each gradient is off, from the last parameters on; those that nothing tells are left out."""
        known: dict[str, float] = {}
        for number in reversed(range(len(self.symmetries))):
            shares, _ = _shares(self, number)
            if shares is not None:
                paths = [path for path in reversed(shares) if path in known] or list(reversed(shares))
                anchor = known.setdefault(paths[0], 1.0) / shares[paths[0]]
                for path, share in shares.items():
                    known.setdefault(path, anchor * share)
        return known


def causes_of(evidence: Evidence, number: int) -> tuple[Cause, ...]:
    """The causes of what broke the law of a symmetry, those that a test speaks for first.

    Args:
        evidence: What was recorded.
        number: That of the symmetry.
    """
    charge = evidence.symmetries[number]
    rules = {path: evidence.rule(path) for path in charge.paths}
    found = [_of_steps(name, rules) for name in _OF_STEPS]
    gradients = _of_gradients(evidence, number)
    # A layer at rest explains what its gradient lacks. Of the causes in the updates, the one of most parameters counts.
    updates = sorted(found[1:], key=lambda each: -len(each.paths))
    every = [_between(evidence, charge.paths), found[0], *gradients, *updates]
    return tuple(sorted(every, key=lambda each: not each.supported))


def _between(evidence: Evidence, paths: tuple[str, ...]) -> Cause:
    """Whether something else than the optimiser changed weights."""
    name = "weights changed between steps"
    if evidence.changed_between is None:
        return Cause(name, False, "not testable: nobody looked between steps")
    counts = {path: int(evidence.changed_between[:, evidence.paths.index(path)].sum()) for path in paths}
    own = tuple(path for path, count in counts.items() if count)
    if not own:
        return Cause(name, False, "weights were at each step what the step before had left")
    told = "; ".join(f"{path}: before {counts[path]} of {len(evidence.changed_between)} recorded steps" for path in own)
    return Cause(name, True, told, own)


def _of_steps(name: str, rules: dict[str, StepRule]) -> Cause:
    own = {path: rule for path, rule in rules.items() if rule.name == name}
    if own:
        return Cause(name, True, "; ".join(f"{path}: {rule.said}" for path, rule in own.items()), tuple(own))
    if all(rule.name == "as declared" for rule in rules.values()):
        worst = max(rule.times for rule in rules.values())
        return Cause(name, False, f"the updates follow from the gradients, to {worst:.1e} of rounding")
    return Cause(name, False, "no parameter has updates that look like it")


def _of_gradients(evidence: Evidence, number: int) -> list[Cause]:
    """The causes by which the gradient itself has not the symmetry."""
    charge, rows = evidence.symmetries[number], evidence.rows(number)
    count = len(charge.parts)
    slopes = evidence.part_slope[:, rows, :count]
    sums, rounding = slopes.sum(2), evidence.part_slope_rounding[:, rows, :count].sum(2)
    times = np.abs(sums).sum(0) / np.maximum(rounding.sum(0), np.finfo(float).tiny)
    if times.max(initial=0.0) <= 1:
        said = f"the gradient keeps the symmetry, to {times.max(initial=0.0):.1e} of rounding"
        return [Cause(name, False, said) for name in _OF_GRADIENTS]
    backward = _backward(evidence, number)
    inside = _inside(charge, times)
    penalty = _penalty(charge, sums, evidence.part_charge[:, rows, :count])
    return [backward, inside, penalty, _norm(charge, sums, (backward, inside, penalty))]


def _backward(evidence: Evidence, number: int) -> Cause:
    """Whether Σ α_A x_A is zero for other factors than one: the gradient of A is 1/α_A of what it should be."""
    name, charge = "wrong backward pass", evidence.symmetries[number]
    shares, left = _shares(evidence, number)
    if shares is None:
        said = "no factors of the parts make the slopes vanish" if left else "not testable: one part alone has a slope"
        return Cause(name, False, f"{said}: {left:.1e} is left" if left else said)
    if max(abs(share - 1) for share in shares.values()) < _UNEQUAL:
        return Cause(name, False, "the slopes vanish with equal factors, but for less than a tenth")
    factors = evidence.factors()
    wrong = {path: factors[path] for path in charge.paths if abs(factors.get(path, 1.0) - 1) > _UNEQUAL}
    wrong = wrong or shares
    said = "; ".join(
        f"{path}: its gradient is {share:.4g} times what those behind it say" for path, share in wrong.items()
    )
    return Cause(name, True, f"{said}, to {left:.1e}", tuple(wrong))


def _shares(evidence: Evidence, number: int) -> tuple[dict[str, float] | None, float]:
    """By which factors the gradients of parts are off against that of the last, if any explain the slopes; and how."""
    charge = evidence.symmetries[number]
    columns = evidence.part_slope[:, evidence.rows(number), : len(charge.parts)].reshape(-1, len(charge.parts))
    lengths = np.linalg.norm(columns, axis=0)
    moved = np.flatnonzero(lengths > _STILL * lengths.max(initial=0.0))
    if len(moved) < 2 or len(columns) < _FEWEST or charge.kind == "translation":
        return None, 0.0
    _, values, right = np.linalg.svd(columns[:, moved] / lengths[moved], full_matrices=False)
    left = float(values[-1] / values[-2])
    if left > _FITS or not np.all(np.abs(right[-1]) > _FITS):
        return None, left
    # What is read last is nearest to the loss, and its gradient passed fewest backward passes.
    factors = right[-1] / lengths[moved]
    return {
        charge.parts[place].path: float(factors[-1] / each) for place, each in zip(moved, factors, strict=True)
    }, left


def _inside(charge: Charge, times: np.ndarray) -> Cause:
    """Whether charges of a matrix break off the diagonal only, as rescaling each unit keeps what acts on each alone."""
    name = "elementwise operation inside"
    if charge.kind != "matrix" or charge.block == 1:
        return Cause(name, False, "not testable: the charges are no matrices")
    rows, columns = np.triu_indices(charge.block)
    diagonal = np.tile(rows == columns, charge.units // charge.block)
    within, off = times[diagonal].max(), times[~diagonal].max()
    said = f"the gradient breaks the diagonal of the charges by {within:.1e} and the rest by {off:.1e} of rounding"
    if within <= 1 < off:
        return Cause(name, True, f"{said}, as dropout or an activation between the layers does", charge.paths)
    return Cause(name, False, said)


def _penalty(charge: Charge, sums: np.ndarray, own: np.ndarray) -> Cause:
    """Whether the slopes sum to μ θ_AᵀGθ_A of one part."""
    name, left, best = "penalty in the loss", np.inf, (0, 0.0)
    for place in range(own.shape[2]):
        squares = np.sum(own[:, :, place] ** 2)
        if squares > 0:
            strength = np.sum(own[:, :, place] * sums) / squares
            rest = np.linalg.norm(sums - strength * own[:, :, place]) / np.linalg.norm(sums)
            if rest < left:
                left, best = rest, (place, float(strength))
    path = charge.parts[best[0]].path
    said = f"the slopes sum to {best[1]:.4g} times the charge of {path}, but for {left:.1e}"
    return Cause(name, bool(left < _FITS), said, (path,) if left < _FITS else ())


def _norm(charge: Charge, sums: np.ndarray, others: tuple[Cause, ...]) -> Cause:
    name = _OF_GRADIENTS[-1]
    if charge.kind != "scale":
        return Cause(name, False, "the symmetry is not the scale of weights before a norm")
    if any(each.supported for each in others):
        return Cause(name, False, "another cause explains the slopes")
    return Cause(name, True, f"the slope along the weights is {np.abs(sums).max():.1e} and not zero", charge.paths)
