"""Exact trajectory of one small ReLU neuron, composed of great-circle arcs between changes of its active samples."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal, TypeAlias

import numpy as np
import scipy
from annotated_types import Ge, IsFinite
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ONE_OUTPUT, SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.units import in_units
from dynascope.validation import checked, require, require_shape

__all__ = [
    "AlignmentPath",
    "ExtremalKind",
    "FrozenDrift",
    "Inputs",
    "OneColumn",
    "alignment_path",
    "single_output",
    "trajectory_from",
]

Inputs: TypeAlias = IsFinite[Float[np.ndarray, "n d"]]
OneColumn: TypeAlias = IsFinite[Float[np.ndarray, "n ..."]]
ExtremalKind = Literal["interior", "kink", "semi-stable", "dead"]

# A velocity below this fraction of the sum of its terms' absolute values counts as zero.
_ROUND_OFF = 1e-12
# A direction whose angle to the boundary of a sample is below this value (in radians) is on the boundary.
_ON_BOUNDARY = 1e-9
# Samples whose directions differ by less than this value (in radians) share a boundary.
_SAME_LINE = 1e-11


@dataclasses.dataclass(frozen=True)
class AlignmentPath:
    """The trajectory of a balanced neuron (|a| = ‖w‖) with frozen residuals, in pieces of constant drift.

    Attributes:
        times: Initial time of each piece, shape (pieces,); the first is zero.
        corners: Unit direction of the input weights at these times, shape (pieces, d).
        growths: log(‖θ(t)‖ / ‖θ(0)‖) at these times, shape (pieces,).
        drifts: Drift F of the neuron on each piece (see `alignment_path`), shape (pieces, d).
        end: The extremal direction that the neuron reaches or converges to, a unit vector, shape (d,).
        kind: "interior", "kink", "semi-stable" or "dead" (see `extremal_directions`).
        rate: d log‖θ‖/dt at the end; negative if the neuron decays.
    """

    times: Float[np.ndarray, " pieces"]
    corners: Float[np.ndarray, "pieces d"]
    growths: Float[np.ndarray, " pieces"]
    drifts: Float[np.ndarray, "pieces d"]
    end: Float[np.ndarray, " d"]
    kind: ExtremalKind
    rate: float

    __repr__ = short_repr

    @checked
    def at(
        self, times: Annotated[Float[np.ndarray, " time"], Ge(0)]
    ) -> tuple[Float[np.ndarray, "time d"], Float[np.ndarray, " time"]]:
        """Return the unit directions and log(‖θ(t)‖ / ‖θ(0)‖) at the given times t ≥ 0.

        On a piece with drift F, the input weights and the size a of the output weight obey w' = a F, a' = F·w. The
        component of w perpendicular to F is therefore constant. Both a and the component along F are combinations of
        cosh and sinh.

        Raises:
            InputError: If a time is negative or not finite.
        """
        piece = np.searchsorted(self.times, times, side="right") - 1
        corner, drift = self.corners[piece], self.drifts[piece]
        # Scaling by a power of two avoids overflow and underflow of squares without rounding errors.
        unit = np.exp2(np.frexp(np.abs(drift).max(axis=1, initial=0.0))[1] - 1)
        speed = unit * np.linalg.norm(drift / unit[:, None], axis=1)
        along = drift / np.where(speed > 0, speed, 1.0)[:, None]
        cosine = np.clip(np.sum(corner * along, axis=1), -1.0, 1.0)
        phase = speed * (times - self.times[piece])
        decay = np.exp(-phase)
        # All terms are divided by exp(phase), which may overflow.
        ahead = cosine * (1 + decay**2) / 2 + (1 - decay**2) / 2
        direction = corner * decay[:, None] + along * (ahead - cosine * decay)[:, None]
        size = np.linalg.norm(direction, axis=1)
        # A neuron that points in the direction opposite to its drift shrinks without turning.
        still = (size < 1e-8) | (speed == 0)
        direction = np.where(still[:, None], corner, direction / np.where(still, 1.0, size)[:, None])
        with np.errstate(divide="ignore"):
            growth = phase + np.logaddexp(np.log((1 + cosine) / 2), np.log((1 - cosine) / 2) - 2 * phase)
        return direction, self.growths[piece] + growth


@covers(
    network="two-layer ReLU, one output",
    data="any",
    start="small",
    gives="the direction of each neuron before the loss decreases",
    reference="arXiv:1803.08367",
    exact=False,
    assumes=(ONE_OUTPUT, SMALL_START),
)
@in_units(
    "residuals",
    "inputs",
    "start",
    inputs="x",
    residuals="y",
    start="w",
    gives={"times": "x^-1 y^-1", "drifts": "x y", "rate": "x y"},
)
def alignment_path(
    inputs: Inputs,
    residuals: OneColumn,
    start: IsFinite[Float[np.ndarray, " d"]],
    *,
    sign: Literal[1, -1] = 1,
) -> AlignmentPath:
    """Compute the trajectory of the direction of one neuron a·relu(w·x) from a small initialisation.

    ŵ' = (I − ŵ ŵᵀ) F, d log‖θ‖/dt = F·ŵ, F = sign(a) E[r x; w·x > 0]

    These equations hold for a balanced neuron, |a| = ‖w‖, as long as all weights are small, because the residuals
    r = y − f are then constant. The drift F is constant until a sample becomes active or inactive, and ŵ moves along
    the great circle towards F/‖F‖. A neuron that reaches a boundary w·x_j = 0 may cross it. If the drift on both sides
    points towards the boundary, which requires sign(a)·r_j < 0, the neuron instead slides along the boundary with the
    shortest of the vectors F + c r_j x_j / n, 0 ≤ c ≤ 1 (Filippov's solution). The trajectory consists of finitely many
    arcs of great circles, whose durations have closed forms, so the result is exact up to rounding.

    Args:
        inputs: x, shape (n, d); append a column of ones for a bias.
        residuals: r, shape (n,) or (n, 1); for a small network, these are the targets.
        start: Initial direction of w, of any nonzero length, shape (d,).
        sign: Sign of the output weight a, 1 or −1. The sign of a balanced neuron is constant.

    Returns:
        The trajectory, for all times.

    Raises:
        InputError: If shapes do not match, a value is not finite, there are several outputs, all residuals vanish,
            `start` is zero, or `sign` is not ±1.

    Assumptions: one output; |a| = ‖w‖ (for |a| > ‖w‖ the path is the same, but the times differ); generic data.

    References:
        Maennel, Bousquet, Gelly, arXiv:1803.08367; Boursier et al., arXiv:2206.00939.

    Example:
        >>> path = alignment_path(np.eye(2), np.array([2.0, -1.0]), np.array([1.0, 1.0]))
        >>> path.kind, path.end.tolist(), path.rate
        ('kink', [1.0, 0.0], 1.0)
    """
    r = single_output(inputs, residuals)
    require_shape("start", start, (inputs.shape[1],))
    length = float(np.linalg.norm(start))
    require(length > 0, "start is zero", argument="start", value=0.0, remedy="give a nonzero initial direction")
    return trajectory_from(FrozenDrift.of(inputs, r, sign), start / length)


def single_output(inputs: np.ndarray, values: np.ndarray, name: str = "residuals") -> np.ndarray:
    """Check residuals or targets, which must not all vanish, and return them with shape (n,)."""
    require_shape(name, values, (len(inputs), 1) if values.ndim == 2 else (len(inputs),))
    r = values.reshape(-1)
    require(
        bool(np.any(r[:, None] * inputs)),
        f"{name} or inputs are zero on every sample",
        argument=name,
        value=0.0,
        remedy="give at least one sample on which both are nonzero",
    )
    return r


@dataclasses.dataclass(frozen=True)
class FrozenDrift:
    """The drift F(w) = constant + Σ pull_j x_j over the samples with w·x_j > 0; no two samples are collinear.

    For samples on one line, x_k = c_k x, those with c_k < 0 are active exactly when the others are inactive:
    relu(−z) = relu(z) − z. The samples are therefore merged into one sample with pull Σ |c_k| pull_k and a constant
    drift.

    Attributes:
        inputs: x, shape (n, d).
        pulls: sign(a)·r_j / n, shape (n,), all nonzero.
        constant: The part of the drift that does not depend on w, shape (d,).
        zero: Norm below which a drift counts as zero.
    """

    inputs: np.ndarray
    pulls: np.ndarray
    constant: np.ndarray
    zero: float

    @classmethod
    def of(cls, x: np.ndarray, r: np.ndarray, sign: int) -> FrozenDrift:
        """Return the drift of neurons whose output weight has the given sign."""
        lengths, pulls = np.linalg.norm(x, axis=1), sign * r / len(x)
        zero = _ROUND_OFF * float(np.abs(pulls) @ lengths)
        lines: list[int] = []
        merged: list[float] = []
        constant = np.zeros(x.shape[1])
        for k in np.flatnonzero((lengths > 0) & (pulls != 0)):
            unit = x[k] / lengths[k]
            cosines = x[lines] @ unit / lengths[lines]
            across = np.linalg.norm(x[lines] / lengths[lines][:, None] - cosines[:, None] * unit, axis=1)
            same = np.flatnonzero(across < _SAME_LINE)
            if not len(same):
                lines.append(int(k))
                merged.append(pulls[k])
                continue
            merged[same[0]] += pulls[k] * lengths[k] / lengths[lines[same[0]]]
            constant += pulls[k] * x[k] * (cosines[same[0]] < 0)
        kept = np.abs(merged) * lengths[lines] > zero
        return cls(x[lines][kept], np.array(merged)[kept], constant, zero)

    def over(self, active: np.ndarray) -> np.ndarray:
        """Return F for the given active samples; a result of the size of rounding errors is set to zero."""
        drift = self.constant + (self.pulls * active) @ self.inputs
        return drift if np.linalg.norm(drift) > self.zero else np.zeros_like(drift)


def trajectory_from(field: FrozenDrift, w: np.ndarray) -> AlignmentPath:
    """Compute the trajectory that starts at the unit vector w."""
    x, lengths = field.inputs, np.linalg.norm(field.inputs, axis=1)
    margin = x @ w
    active = margin > 0
    sliding = (margin == 0) & (field.pulls < 0)
    time = growth = 0.0
    pieces = []
    while True:
        drift, active, sliding = _least_drift(field, active, sliding)
        speed = float(np.linalg.norm(drift))
        pieces.append((time, w, growth, drift))
        require(
            len(pieces) <= 100 * (len(x) + 1),
            f"the trajectory of a neuron did not end after {len(pieces)} pieces",
            argument="inputs",
            value=x.shape,
            remedy="remove duplicate samples or perturb them slightly",
        )
        ahead = float(w @ drift)
        if np.linalg.norm(drift - ahead * w) <= max(field.zero, _ON_BOUNDARY * speed):
            return _finished(field, pieces, sliding, w, ahead)
        slope = x @ drift
        slope[sliding | (np.abs(slope) <= field.zero * lengths)] = 0.0
        approaching = np.where(active, slope < 0, slope > 0)
        if not approaching.any():
            return _finished(field, pieces, sliding, drift / speed, speed)
        durations = np.full(len(x), np.inf)
        durations[approaching] = np.abs(margin[approaching] / slope[approaching])
        nearest = int(np.argmin(durations))
        passed, grown = _duration(ahead / speed, float(durations[nearest]) * speed)
        time, growth = time + passed / speed, growth + grown
        w = w + durations[nearest] * drift
        w = w / np.linalg.norm(w)
        margin = x @ w
        margin[sliding] = 0.0
        margin[nearest] = 0.0
        if field.pulls[nearest] < 0:
            active[nearest], sliding[nearest] = False, True
        else:
            active[nearest] = not active[nearest]


def _duration(cosine: float, distance: float) -> tuple[float, float]:
    """Return the duration (as ‖F‖·t) and the logarithmic growth until w is parallel to ŵ + μ F.

    Here distance = μ ‖F‖ and cosine = ŵ·F/‖F‖.
    """
    along = cosine + distance
    size = np.sqrt(along**2 + 1 - cosine**2)
    # cosine·(cosh s − 1) + sinh s = distance, solved for exp(s) without cancellation.
    exponential = (along + size) / (1 + cosine) if along > 0 else (1 - cosine) / (size - along)
    return float(np.log(exponential)), float(np.log(size))


def _least_drift(
    field: FrozenDrift, active: np.ndarray, sliding: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the shortest drift over the shares c of the sliding samples, and the new active and sliding samples.

    Samples with c = 0 or 1 no longer slide.
    """
    candidates = np.flatnonzero(sliding)
    base = field.over(active)
    if not len(candidates):
        return base, active, sliding
    columns = (field.pulls[candidates, None] * field.inputs[candidates]).T
    shares = np.linalg.lstsq(columns, -base, rcond=None)[0]
    if shares.min() < -_ROUND_OFF or shares.max() > 1 + _ROUND_OFF:
        shares = scipy.optimize.lsq_linear(columns, -base, bounds=(0.0, 1.0), method="bvls", tol=1e-15).x
    off, on = shares <= _ROUND_OFF, shares >= 1 - _ROUND_OFF
    active, sliding = active.copy(), sliding.copy()
    active[candidates], sliding[candidates] = on, ~(off | on)
    base, columns = field.over(active), columns[:, ~(off | on)]
    drift = base + columns @ np.linalg.lstsq(columns, -base, rcond=None)[0]
    return drift if np.linalg.norm(drift) > field.zero else np.zeros_like(drift), active, sliding


def _finished(field: FrozenDrift, pieces: list, sliding: np.ndarray, end: np.ndarray, rate: float) -> AlignmentPath:
    times, corners, growths, drifts = (np.array(each) for each in zip(*pieces, strict=True))
    boundary = np.abs(field.inputs @ end) <= _ON_BOUNDARY * np.linalg.norm(field.inputs, axis=1)
    # On the other side of such a boundary, neurons move away from the direction.
    open_ended = boundary & ((field.pulls > 0) | (~sliding & (rate < 0)))
    if not (drifts[-1].any() or sliding.any()):
        kind = "dead"
    elif not boundary.any():
        kind = "interior"
    else:
        kind = "semi-stable" if open_ended.any() else "kink"
    return AlignmentPath(times, corners, growths, drifts, end, kind, rate)
