"""Loss staircase of linear attention with rank-one heads, which learns one principal component after another."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.results.clock import time_unit
from dynascope.results.staircase import Staircase
from dynascope.theory.assumptions import SEPARATED_TIMES, SMALL_START
from dynascope.theory.attention.dormant_heads import Activation, activations
from dynascope.theory.attention.levels import AttentionModes, Heads, attention_modes, split_heads
from dynascope.theory.domain import covers
from dynascope.theory.papers import ALTERNATING, ATTENTION
from dynascope.validation import require
from dynascope.validation.bounded import FiniteNumbers, OpenFraction, PositiveInt

__all__ = ["linear_attention_staircase"]

_THEORY = "alternating gradient flow of linear attention"
_REFERENCE = f"{ATTENTION}; {ALTERNATING}"
# Bounds on the weight of a head along other modes, and on the norm of other heads, when the head learns its mode. On
# about 30 random problems at scales from 3e-3 to 3e-4, the largest error of the times was 1.5 % within these bounds and
# 17 % beyond them.
_MIXED, _CROWDED = 0.7, 0.3
_DEGENERATE = 1e-9  # relative gap below which two eigenvalues count as equal
_NO_HEADS = "the initial heads are not given"
_BOUND = "The initial heads are not given: the first time is a lower bound, and the others are approximate."


@covers(
    network="linear attention, rank-one heads",
    data="in-context regression, population",
    start="small",
    gives="times, levels and features of all jumps",
    reference="arXiv:2501.16265",
    exact=False,
    assumes=(SMALL_START.costing("times are wrong by up to 5 %, less for smaller initial weights"), SEPARATED_TIMES),
)
def linear_attention_staircase(
    covariance: FiniteNumbers,
    context_length: float,
    *,
    scale: OpenFraction,
    neurons: Heads | None = None,
    heads: PositiveInt | None = None,
    normalised: bool = False,
) -> Staircase:
    """Predict the loss staircase (plateaus and jumps) of linear attention with rank-one heads on in-context regression.

    Each head (v, k, q) is homogeneous of degree 3. While the head is small, it obeys v' = kᵀMq, k' = v M q, q' = v Mᵀk
    with M = Σ² on the unlearned modes. It blows up at a finite s = α·t, which depends on its initial direction. It then
    learns the strongest unlearned mode within a time that is bounded as α → 0. The jump times at the given scale
    include corrections of order one in t. The remaining error is of order α^(1 − λ′²/λ²), where λ′ is the next
    eigenvalue.

    In the homogeneity-normalised flow, all heads align first, and the jumps occur at t = √3/λ_j² · log(1/α) + O(1).

    Args:
        covariance: Σ, symmetric and positive semidefinite, shape (d, d), or the d variances of independent inputs.
        context_length: Number of examples N ≥ 1; ∞ is allowed.
        scale: Factor α of the initial weights, between 0 and 1.
        neurons: Initial heads at unit scale, as rows (v | k | q), shape (H, 2d + 1). If not given, each jump time is
            that of an aligned head with v² = ‖k‖² = ‖q‖² = 1, s = 1/λ_j². This time is a lower bound for the first jump
            and approximate for the others.
        heads: Number of heads H if `neurons` is not given; by default, the number of modes.
        normalised: Whether to predict the homogeneity-normalised flow, θ_h' = −∇L/‖θ_h‖.

    Returns:
        A staircase with homogeneity degree 3. Its feature `input_feature` is the unit vector learned at each jump. A
        jump is marked slow, with the reason, if its time is unknown, if the head of an earlier jump learned a mixture
        of modes at this scale, or if another head was no longer small at an earlier jump.

    Raises:
        InputError: If N is below one, Σ is not symmetric, positive semidefinite and nonzero, the scale is out of range,
            the heads are not finite, have the wrong shape or are all zero, or both `neurons` and `heads` are given.

    Assumptions: generic heads; population gradient flow from small initial weights.

    Source: arXiv:2501.16265, section 5; arXiv:2506.06489. The reduction of a dormant head to one dimension and the
    corrections at finite scale are derived in `theory.attention.dormant_heads`.

    Example:
        >>> steps = linear_attention_staircase([1.0, 0.5], np.inf, scale=0.01, normalised=True)
        >>> steps.accelerated_times.round(3), steps.levels
        (array([1.732, 6.928]), array([0.75, 0.25, 0.  ]))
    """
    modes = attention_modes(covariance, context_length)
    unit = time_unit(scale, degree=3, normalised=normalised)
    require(
        neurons is None or heads is None,
        "both neurons and heads are given",
        argument="heads",
        value=heads,
        remedy="omit heads, because neurons has one row per head",
    )
    if neurons is None:
        count = len(modes.variances) if heads is None else heads
        rows = None
    else:
        rows = split_heads(neurons, len(modes.axes))
        count = len(rows[0])
    jumps = min(count, len(modes.variances))
    if normalised:
        steps, warnings = [_aligned(modes, j, np.sqrt(3), unit) for j in range(jumps)], ()
    elif rows is None:
        steps, warnings = [_aligned(modes, j, 1.0, unit, slow=_NO_HEADS) for j in range(jumps)], (_BOUND,)
    else:
        steps, warnings = _from_heads(modes, rows, scale)
    if len(steps) < len(modes.variances):
        warnings += (
            f"With {count} head{'s' * (count > 1)}, only {len(steps)} of {len(modes.variances)} modes are learned.",
        )
    if np.any(np.diff(modes.variances) >= -_DEGENERATE * modes.variances[0]):
        warnings += ("Some eigenvalues are equal, so the order of their directions depends on the initial heads.",)
    return Staircase(
        accelerated_times=np.array([step.limit for step in steps]),
        times=np.array([step.time for step in steps]),
        levels=modes.levels([step.mode for step in steps]),
        learned=tuple(step.learned for step in steps),
        slow=tuple(step.slow for step in steps),
        features={"input_feature": (("jump", "feature"), np.array([step.direction for step in steps]))},
        theory=_THEORY,
        reference=_REFERENCE,
        warnings=warnings,
        degree=3,
        normalised=normalised,
    )


@dataclasses.dataclass(frozen=True)
class _Step:
    mode: int
    direction: np.ndarray
    limit: float
    time: float
    learned: str
    slow: str = ""


def _aligned(modes: AttentionModes, j: int, factor: float, unit: float, slow: str = "") -> _Step:
    """Return the jump, at factor/λ², of a head that is initially aligned with its mode."""
    limit = factor / modes.variances[j] ** 2
    return _Step(j, modes.axes[:, j], limit, limit * unit, _phrase(modes, j), slow)


def _from_heads(
    modes: AttentionModes, rows: tuple[np.ndarray, np.ndarray, np.ndarray], scale: float
) -> tuple[list[_Step], tuple[str, ...]]:
    """Compute the jumps of the given heads, and the warnings about them."""
    v, k, q = rows
    weights = {"v": v, "k": k @ modes.axes, "q": q @ modes.axes, "rates": modes.variances**2, "gains": modes.gains}
    in_limit, at_scale = activations(**weights, scale=0.0), activations(**weights, scale=scale)
    require(
        len(in_limit) > 0,
        "no head grows",
        argument="neurons",
        remedy="pass random initial heads",
    )
    steps, slow = [], ""
    for limit, actual in zip(in_limit, at_scale, strict=False):
        direction = modes.axes @ limit.direction
        names = ", ".join(str(head + 1) for head in limit.heads)
        steps.append(
            _Step(
                mode=limit.mode,
                direction=direction * np.sign(direction[np.argmax(np.abs(direction).round(9))]),
                limit=limit.blow_up,
                time=max(actual.half_learned, 0.0) / scale,
                learned=f"{_phrase(modes, limit.mode)}, by head{'s' * (len(limit.heads) > 1)} {names}",
                slow=slow,
            )
        )
        slow = slow or _disturbance(limit, actual)
    tied = [step.learned for step, each in zip(steps, in_limit, strict=False) if len(each.heads) > 1]
    return steps, tuple(f"Heads learn together: {learned}." for learned in tied)


def _disturbance(limit: Activation, actual: Activation) -> str:
    """Return the reason why the times of later jumps are uncertain; empty if they are not."""
    if limit.heads != actual.heads:
        return "at this scale, the heads activate in a different order from that in the limit of small scales"
    if actual.mixing > _MIXED:
        return "at this scale, the head of an earlier jump learned a mixture of modes"
    if actual.crowding > _CROWDED:
        return "at this scale, another head was no longer small at an earlier jump"
    return ""


def _phrase(modes: AttentionModes, j: int) -> str:
    return f"direction of variance {modes.variances[j]:.4g}"
