"""Which conservation laws a recorded run broke, where, since when, and which causes its numbers speak for."""

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

__all__ = ["Audit", "Finding", "audit"]

_LAW = ("measured_charge", "predicted_charge", "charge_bound")
_CAUSES = tuple(field.name for field in dataclasses.fields(Evidence) if field.default is dataclasses.MISSING)[1:]
_SEEN_BETWEEN = "changed_between"  # of loops that `descend` does not make
_SAME = "give those that the record's statistics were made with"


@dataclasses.dataclass(frozen=True, eq=False)
class Finding:
    """A symmetry whose law is broken.

    Attributes:
        charge: The symmetry.
        broken: For each of its charges whether its residual is beyond what rounding can do at any recorded step.
        last_kept: Last recorded step up to which all its laws were kept; `first_broken` if there is none.
        first_broken: First recorded step at which one was not.
        times: Largest residual, in bounds of rounding.
        causes: Each cause that was tested, what the test said and of which parameters; those that it speaks for first.
            Empty if the run was recorded without `causes`.

    Example:
        >>> from dynascope.symmetry import Part
        >>> norm = Charge("scale", (Part("['w']", np.array([0, 0]), 1.0),), 1)
        >>> print(str(Finding(norm, np.array([True]), 10, 20, 3e4, ())).partition(";")[0])
        scale ['w']: 1 of 1 laws broken, first between steps 10 and 20, up to 3.0e+04 bounds
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
        """The parameters that take part."""
        return self.charge.paths

    @property
    def cause(self) -> Cause | None:
        """The cause that its test speaks for most plainly, if any."""
        return next((each for each in self.causes if each.supported), None)

    def __str__(self) -> str:
        count = f"{int(self.broken.sum())} of {self.broken.size} laws"
        since = f"between steps {self.last_kept} and {self.first_broken}"
        said = (
            f"{self.charge.kind} {' '.join(self.paths)}: {count} broken, first {since}, up to {self.times:.1e} bounds"
        )
        if not self.causes:
            return f"{said}; record with causes=True to have causes tested"
        return f"{said}; " + ("no tested cause fits" if self.cause is None else str(self.cause))


@dataclasses.dataclass(frozen=True, eq=False)
class Audit:
    """What a recorded run says of the laws of its symmetries.

    Attributes:
        findings: Symmetries with a broken law, the largest residual first.
        checked: Number of charges that were looked at.
        steps: Number of recorded steps.
        times: Largest residual of all charges, in bounds of rounding; at most one where all laws are kept.
    """

    findings: tuple[Finding, ...]
    checked: int
    steps: int
    times: float

    __repr__ = short_repr

    @property
    def clean(self) -> bool:
        """Whether every law was kept at every recorded step, to rounding."""
        return not self.findings

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What the findings speak for, with the parameters of all that name it; those of most parameters first.

        Where a finding cannot tell several causes apart, the one that most findings support counts.
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
        """The cause of most parameters, if any."""
        return next(iter(self.causes), None)

    @property
    def table(self) -> str:
        """A sentence, and the findings, each with the causes that were tested and what the tests said."""
        lines = [str(self)]
        for each in self.findings:
            lines.append(f"  {each}")
            said: dict[tuple[bool, str], list[str]] = {}
            for cause in each.causes:
                said.setdefault((cause.supported, cause.evidence), []).append(cause.name)
            for (supported, words), names in said.items():
                lines.append(f"    {'+' if supported else '−'} {', '.join(names)}: {words}")
        return "\n".join(lines)

    def __str__(self) -> str:
        if self.clean:
            return f"all {self.checked} laws were kept at {self.steps} recorded steps, to {self.times:.1e} of the bound"
        broken = sum(int(each.broken.sum()) for each in self.findings)
        first = min(each.first_broken for each in self.findings)
        said = f"{broken} of {self.checked} laws are broken, by step {first}, up to {self.times:.1e} bounds"
        return "; ".join([f"training is not what was declared: {said}", *map(str, self.causes)])


def audit(record: xr.Dataset, symmetries: Sequence[Charge]) -> Audit:
    """Find what in a training run is not as it was declared, by the conservation laws that it breaks.

    Each law of the record is compared with the bound of rounding: a residual above it proves that the optimiser, its
    settings or the gradients are not what was declared. For a broken law, causes are then tested by the numbers that
    `charge_statistics` records with `causes=True`. With the gradient g of the loss, the gradient g′ that the update
    implies by the declared rule, and the slopes θ_AᵀGg of each part A of the symmetry, which sum to zero:

    - Does the update follow from the gradient by the declared rule? If not, by another rule (heavy ball, Nesterov's,
      decoupled decay)? Is g′ + λθ = c (g + λθ), c constant or of each step (another learning rate, an undeclared
      schedule); g′ = c g, with c constant (a gradient multiplied) or such that the norm is (clipping by tensor);
      g′ = g + μθ (another decay); g′ = g + μ sign θ (an L1 decay); g′ = g + μv with the buffer v (another momentum);
      or g cut off at a value? Is there no update (a frozen layer)? Were weights changed between steps?
    - Does the gradient have the symmetry? If not, do the slopes sum to zero with other factors of the parts (a wrong
      backward pass); to Σ μ_A θ_AᵀGθ_A (an L2 penalty in the loss) or Σ μ_A θ_AᵀG sign θ_A (L1); to κ times those of
      the gradient of the step before (gradients that were not zeroed); to zero on the diagonal of a matrix only (an
      elementwise operation such as dropout between two layers)? Is it the scale of weights before a norm (its ε, or
      other statistics than those of the batch)? Are the sums noise without mean and memory, as small as rounding
      (lower precision, such as autocast) or not (dropout)?

    A fit counts if it leaves less than a hundredth of what is to be explained, or no more than rounding. If another
    fit leaves less than three times as much, both remain possible, as `Cause.rivals`. A cause is evidence and no proof:
    two defects at once can look like a third.

    The audit cannot see what keeps every law: clipping by the global norm; without decay, a constant factor of the
    learning rate or of all gradients; dropout of whole ReLU units or of attention's probabilities; wrong data or
    labels; a wrong sign in the forward pass, which is another function with the same symmetries. It sees nothing of
    parameters without a symmetry that `find_symmetries` finds. A copy of a tied weight adds a symmetry:
    `find_symmetries` of the function that is trained then has more charges. Rounding beyond the declared
    `gradient_roundings`, as of gradients that are nothing but what cancellation leaves, would be taken for a defect.

    Args:
        record: Of one run, with the statistics of `training.charge_statistics`, best with `causes=True`. Causes are
            tested at the recorded steps.
        symmetries: Those that the statistics were made with.

    Raises:
        InputError: A record without charges or of several runs, symmetries that do not fit, values that are not finite.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, whose laws are held against the run.

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
    # Of weights that are zero nothing is rounded.
    with np.errstate(over="ignore"):
        times = np.divide(off, np.maximum(bound, np.finfo(float).tiny), out=np.zeros_like(off), where=off > 0)
    steps = record["step"].to_numpy()
    known = all(name in record for name in _CAUSES)
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
    return Audit(tuple(findings), measured.shape[1], len(steps), float(times.max(initial=0.0)))


def _checked(record: Any, symmetries: Any) -> tuple[Charge, ...]:
    require(
        isinstance(record, xr.Dataset) and all(name in record for name in _LAW),
        "record has no charges beside their laws",
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
        remedy="choose one run, as record.isel(seed=0)",
    )
    size = sum(each.size for each in symmetries)
    require(
        size == record.sizes["charge"] and record.sizes["step"] > 0,
        f"the symmetries have {size} charges, and the record {record.sizes['charge']} at {record.sizes['step']} steps",
        argument="symmetries",
        value=size,
        remedy=_SAME,
    )
    return tuple(symmetries)


def _series(record: xr.Dataset, name: str) -> np.ndarray:
    values = record[name].to_numpy().astype(np.float64)
    require_finite_values("record", values, remedy="give the steps before the run diverged")
    return values


def _evidence(record: xr.Dataset, symmetries: tuple[Charge, ...]) -> Evidence:
    """The numbers of the steps that led to recorded ones; there is none before the start."""
    later = record.isel(step=record["step"].to_numpy() > 0)
    names = [*_CAUSES, *([_SEEN_BETWEEN] if _SEEN_BETWEEN in record else [])]
    unit = float(np.finfo(record["measured_charge"].dtype).eps) / 2
    return Evidence(symmetries, unit=unit, **{name: _series(later, name) for name in names})
