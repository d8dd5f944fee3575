"""Audits a recorded training run: which conservation laws it broke, since which step, and the probable causes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.break_causes import causes_of
from dynascope.symmetry.charge import Charge
from dynascope.symmetry.evidence import Cause, Evidence
from dynascope.symmetry.symmetry_arguments import require_symmetries
from dynascope.validation import require, require_finite_values, shown

__all__ = ["CAUSE_PREFIX", "Audit", "Finding", "audit"]

_LAW = ("measured_charge", "predicted_charge", "charge_bound")
_CAUSES = tuple(field.name for field in dataclasses.fields(Evidence) if field.default is dataclasses.MISSING)[1:]
_CHANGED_BETWEEN = "changed_between"  # only recorded in training loops other than `descend`
CAUSE_PREFIX = "cause_"  # of the statistics in the record of a recorder, where other variables have the same names
_SAME = "give the symmetries for which charge_statistics recorded the run"


@dataclasses.dataclass(frozen=True, eq=False)
class Finding:
    """A symmetry whose conservation law is broken.

    Attributes:
        charge: The symmetry.
        broken: For each charge of the symmetry, whether its residual exceeds the rounding bound at any recorded step.
        last_kept: Last recorded step up to which all laws of the symmetry hold; equal to `first_broken` if there is
            none.
        first_broken: First recorded step at which a law of the symmetry is broken.
        times: Largest residual, in units of the rounding bound.
        causes: Every tested cause, with the result of its test and the affected parameters; supported causes come
            first. Empty if the run was recorded without `causes`.

    Example:
        >>> from dynascope.symmetry import Part
        >>> norm = Charge("scale", (Part("['w']", np.array([0, 0]), 1.0),), 1)
        >>> print(str(Finding(norm, np.array([True]), 10, 20, 3e4, ())).partition(";")[0])
        scale ['w']: 1 of 1 laws broken, first between steps 10 and 20, by up to 3.0e+04 times the bound
    """

    charge: Charge
    broken: np.ndarray
    last_kept: int
    first_broken: int
    times: float
    causes: tuple[Cause, ...]

    __repr__ = short_repr

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters on which the symmetry acts."""
        return self.charge.paths

    @property
    def cause(self) -> Cause | None:
        """The first supported cause, or None."""
        return next((each for each in self.causes if each.supported), None)

    def __str__(self) -> str:
        count = f"{int(self.broken.sum())} of {self.broken.size} laws"
        since = f"between steps {self.last_kept} and {self.first_broken}"
        size = f"by up to {self.times:.1e} times the bound"
        text = f"{self.charge.kind} {' '.join(self.paths)}: {count} broken, first {since}, {size}"
        if not self.causes:
            return f"{text}; record the run with causes=True to test for causes"
        return f"{text}; " + ("no tested cause fits" if self.cause is None else str(self.cause))


@dataclasses.dataclass(frozen=True, eq=False)
class Audit:
    """The result of `audit`: which conservation laws a recorded run broke.

    Attributes:
        findings: Symmetries with a broken law, in descending order of the residual.
        checked: Number of charges that were checked.
        steps: Number of recorded training steps, without step 0; if it is zero, there is no verdict.
        times: Largest residual of any charge, in units of the rounding bound; at most one if all laws hold.
        changed_without_step: Whether the weights changed although the watched optimiser made no step.
    """

    findings: tuple[Finding, ...]
    checked: int
    steps: int
    times: float
    changed_without_step: bool = False

    __repr__ = short_repr

    @property
    def clean(self) -> bool:
        """Whether every law holds at every recorded step, up to rounding errors; False if no step was recorded."""
        return self.steps > 0 and not self.findings

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The causes that the findings support, in descending order of the number of parameters.

        Each cause lists the parameters of all findings that support it. If a finding is consistent with several causes,
        only the cause that most findings support is listed.
        """
        supported = [{each.name: each for each in finding.causes if each.supported} for finding in self.findings]
        counts = Counter(name for each in supported for name in each)
        named: dict[str, list[Cause]] = {}
        for each, own in zip(self.findings, supported, strict=True):
            if each.cause is not None:
                name = max((each.cause.name, *each.cause.rivals), key=counts.__getitem__)
                named.setdefault(name, []).append(own.get(name, each.cause))
        found = [
            dataclasses.replace(
                own[0],
                paths=tuple(dict.fromkeys(path for each in own for path in each.paths)),
                rivals=tuple(name for name in own[0].rivals if all(name in each.rivals for each in own)),
            )
            for own in named.values()
        ]
        return tuple(sorted(found, key=lambda each: -len(each.paths)))

    @property
    def cause(self) -> Cause | None:
        """The supported cause that affects the most parameters, or None."""
        return next(iter(self.causes), None)

    @property
    def table(self) -> str:
        """A summary sentence, followed by the findings, each with the tested causes and their evidence."""
        lines = [str(self)]
        for each in self.findings:
            lines.append(f"  {each}")
            names_of: dict[tuple[bool, str], list[str]] = {}
            for cause in each.causes:
                names_of.setdefault((cause.supported, cause.evidence), []).append(cause.name)
            for (supported, result), names in names_of.items():
                lines.append(f"    {'+' if supported else '−'} {', '.join(names)}: {result}")
        return "\n".join(lines)

    def __str__(self) -> str:
        if self.clean:
            laws = f"all {self.checked} laws hold" if self.checked > 1 else "the law holds"
            steps = f"{self.steps} recorded step{'s' * (self.steps != 1)}"
            size = f"with residuals up to {self.times:.1e} times the bound" if self.times else "without any residual"
            return f"{laws} at {steps}, {size}"
        if not self.findings:
            text = "no step was recorded, so no law was tested"
            if not self.changed_without_step:
                return text
            return f"{text}; the weights changed without a step of the watched optimizer: watch the optimizer in use"
        broken = sum(int(each.broken.sum()) for each in self.findings)
        first = min(each.first_broken for each in self.findings)
        text = f"{broken} of {self.checked} laws are broken by step {first}, by up to {self.times:.1e} times the bound"
        return "; ".join([f"training differs from its declaration: {text}", *map(str, self.causes)])


def audit(record: xr.Dataset, symmetries: Sequence[Charge]) -> Audit:
    """Detect how a training run deviates from its declared settings, based on the conservation laws that it breaks.

    The residual of each law is compared with a bound on rounding errors. A residual above the bound proves that the
    optimiser, its settings or the gradients are not as declared. For each broken law, several causes are then tested on
    the quantities that `charge_statistics` records with `causes=True`. Below, g is the gradient of the loss. g′ is the
    gradient that the declared rule would need to produce the recorded update. The slopes θ_AᵀGg of a symmetry, one for
    each part A, sum to zero.

    Causes in the update, if g′ differs from g:

    - Different learning rate: g′ + λθ = c (g + λθ). If c varies from step to step, there is an undeclared schedule.
    - Gradient multiplied by a factor: g′ = c g with constant c. Gradient clipped by tensor: g′ = c g, where c makes the
      norm of g′ constant.
    - Different weight decay: g′ = g + μθ. Undeclared L1 decay: g′ = g + μ sign θ.
    - Different momentum: g′ = g + μv with the buffer v. Different momentum rule: g′ = g under another rule (heavy ball,
      Nesterov's, decoupled decay).
    - Clipping by value: g′ is g with every entry clipped at a value.
    - Frozen layer: the update or the gradient is zero. Weights changed between steps: something other than the
      optimiser wrote to the weights.

    Causes in the gradient, if the slopes do not sum to zero:

    - Wrong backward pass: the slopes sum to zero only after a correction by a separate factor for each part.
    - L2 or L1 penalty in the loss: the sum is Σ μ_A θ_AᵀGθ_A or Σ μ_A θ_AᵀG sign θ_A.
    - Gradients not zeroed: the sum is κ times the slopes of the previous step's gradient.
    - Elementwise operation in between, e.g. dropout between two layers: the sum is zero only on the diagonal of a
      matrix.
    - Norm: the symmetry rescales the weights followed by a normalisation layer, and no other cause fits. The layer then
      has a different ε, different statistics or a different backward pass.
    - Lower precision (e.g. autocast) or dropout: the sum is noise with zero mean that is uncorrelated from step to
      step. For lower precision, the noise must also be as small as rounding errors.

    A fit is accepted if its residual is less than a hundredth of the quantity to be explained, or within rounding
    errors. If the residual of another fit is less than three times as large, both causes are reported as possible
    (`Cause.rivals`). A cause is evidence, not a proof: two simultaneous defects can resemble a third.

    The audit cannot detect defects that preserve every law:

    - clipping by the global norm;
    - without weight decay, a constant factor on the learning rate or on all gradients;
    - dropout of whole ReLU units or of attention probabilities;
    - wrong data or labels;
    - a wrong sign in the forward pass, which gives another function with the same symmetries.

    Parameters without a symmetry that `find_symmetries` finds are not checked. Untying a tied weight adds a symmetry;
    to detect this, call `find_symmetries` on the trained function, which then has more charges. Rounding errors above
    the level declared by `gradient_roundings` are reported as a defect, e.g. if cancellation dominates a gradient.

    Args:
        record: Record of one run with the statistics of `training.charge_statistics`, preferably with `causes=True`, or
            of a `torch.Recorder` with `charges=True`. Causes are tested at the recorded steps.
        symmetries: The symmetries with which the statistics were computed.

    Raises:
        InputError: If the record has no charges or contains several runs, if the symmetries do not match it, or if its
            values are not finite.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, for the laws.

    Example:
        >>> from dynascope.symmetry import Part
        >>> norm = Charge("scale", (Part("['w']", np.array([0, 0]), 1.0),), 1)
        >>> law = {"predicted_charge": [[1.0], [1.0], [1.0]], "charge_bound": [[1e-6], [2e-6], [3e-6]]}
        >>> series = {**law, "measured_charge": [[1.0], [1.0], [1.3]]}
        >>> record = xr.Dataset({name: (("step", "charge"), each) for name, each in series.items()})
        >>> found = audit(record.assign_coords(step=[0, 10, 20]), [norm])
        >>> found.clean, found.findings[0].last_kept, found.findings[0].first_broken
        (False, 10, 20)
    """
    symmetries = _checked(record, symmetries)
    measured, predicted, bound = (_series(record, name) for name in _LAW)
    off = np.abs(measured - predicted)
    # Weights that are zero have no rounding errors.
    with np.errstate(over="ignore"):
        times = np.divide(off, np.maximum(bound, np.finfo(float).tiny), out=np.zeros_like(off), where=off > 0)
    steps = record["step"].to_numpy()
    known = all(_recorded_name(record, name) in record for name in _CAUSES)
    evidence = _evidence(record, symmetries) if known else None
    findings, start = [], 0
    for number, charge in enumerate(symmetries):
        own = times[:, start : start + charge.size] > 1
        if own.any():
            row = int(own.any(1).argmax())
            causes = () if evidence is None else causes_of(evidence, number)
            worst = float(times[:, start : start + charge.size].max())
            last = int(steps[max(row - 1, 0)])
            findings.append(Finding(charge, np.any(own, axis=0), last, int(steps[row]), worst, causes))
        start += charge.size
    findings.sort(key=lambda each: -each.times)
    return Audit(
        findings=tuple(findings),
        checked=measured.shape[1],
        steps=int((steps > 0).sum()),
        times=float(times.max(initial=0.0)),
        changed_without_step=bool(record.attrs.get("changed_without_step", False)),
    )


def _checked(record: Any, symmetries: Any) -> tuple[Charge, ...]:
    require(
        isinstance(record, xr.Dataset) and all(name in record for name in _LAW),
        "record does not contain the charges and their predicted values",
        argument="record",
        value=shown(record) if not isinstance(record, xr.Dataset) else ", ".join(map(str, record)),
        remedy="give the record of a run with training.charge_statistics(symmetries, causes=True)",
    )
    require_symmetries(symmetries, remedy=_SAME)
    dimensions = record["measured_charge"].dims
    require(
        dimensions == ("step", "charge"),
        f"the charges have the dimensions {', '.join(map(str, dimensions))}",
        argument="record",
        value=[str(each) for each in dimensions],
        remedy="choose one run, e.g. record.isel(seed=0)",
    )
    size = sum(each.size for each in symmetries)
    require(
        size == record.sizes["charge"] and record.sizes["step"] > 0,
        f"symmetries has {size} charges, but the record has {record.sizes['charge']} at {record.sizes['step']} steps",
        argument="symmetries",
        value=size,
        remedy=_SAME,
    )
    return tuple(symmetries)


def _series(record: xr.Dataset, name: str) -> np.ndarray:
    values = record[name].to_numpy().astype(np.float64)
    require_finite_values("record", values, remedy="give only the steps before the run diverged")
    return values


def _evidence(record: xr.Dataset, symmetries: tuple[Charge, ...]) -> Evidence:
    """Collect the statistics of all recorded steps except step 0, which no update precedes."""
    later = record.isel(step=record["step"].to_numpy() > 0)
    names = [*_CAUSES, *([_CHANGED_BETWEEN] if _recorded_name(record, _CHANGED_BETWEEN) in record else [])]
    unit = float(np.finfo(record["measured_charge"].dtype).eps) / 2
    return Evidence(symmetries, unit=unit, **{name: _series(later, _recorded_name(record, name)) for name in names})


def _recorded_name(record: xr.Dataset, name: str) -> str:
    return f"{CAUSE_PREFIX}{name}" if f"{CAUSE_PREFIX}{name}" in record else name
