"""Every extremal direction of data in the plane, with its basin: one scan of the circle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float

from dynascope.theory.relu_alignment.path import ExtremalKind, FrozenDrift
from dynascope.theory.units import in_units
from dynascope.validation import require, require_broadcast, require_shape
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers

__all__ = ["PlaneAttractor", "angle_within_arc", "attractors_in_plane"]

# Boundaries this close (radian) are one.
_SAME_ANGLE = 1e-12


class PlaneAttractor(NamedTuple):
    """Where the initial angles of one arc of the circle lead.

    Attributes:
        angle: Angle of the extremal direction, in [0, 2π).
        kind: "interior", "kink", "semi-stable" or "dead".
        start: Where the basin begins, in [0, 2π).
        end: Where the basin ends; start < end ≤ start + 2π.
    """

    angle: float
    kind: ExtremalKind
    start: float
    end: float


@in_units("drift", drift="t^-1", times="t")
def angle_within_arc(
    start: FiniteNumbers, drift: IsFinite[Float[np.ndarray, " 2"]], times: NonNegativeNumbers
) -> Float[np.ndarray, ...]:
    """Angle of a neuron in the plane while no datum is switched on or off.

    With the constant drift F = sign(a) E[r x; w·x > 0] of angle φ_F the angle obeys φ' = −‖F‖ sin(φ − φ_F), hence
    tan((φ(t) − φ_F)/2) = tan((φ(0) − φ_F)/2) exp(−‖F‖ t).

    Args:
        start: φ(0) in radian, any shape.
        drift: F, shape (2,).
        times: Gradient-flow times t ≥ 0, of a shape that broadcasts with that of the start.

    Returns:
        φ(t), within π of φ(0), of the common shape.

    Raises:
        InputError: Values that are not finite, a negative time, or a drift that is not a vector in the plane.

    References:
        Maennel, Bousquet, Gelly, arXiv:1803.08367.

    Example:
        >>> angle_within_arc(2.0, np.array([1.0, 0.0]), [0.0, 1.0, 50.0]).round(6)
        array([2.      , 1.040567, 0.      ])
    """
    first, time = np.asarray(start), np.asarray(times)
    require_shape("drift", drift, (2,))
    require_broadcast(start=first.shape, times=time.shape)
    speed = np.linalg.norm(drift)
    if speed == 0:
        return first + 0.0 * time
    away = np.remainder(first - np.arctan2(drift[1], drift[0]) + np.pi, 2 * np.pi) - np.pi
    # By sine and cosine of the half angle the point opposite to the drift, where the tangent is infinite, stays put.
    left = 2 * np.arctan2(np.sin(away / 2) * np.exp(-speed * time), np.cos(away / 2))
    return first + (left - away)


def attractors_in_plane(field: FrozenDrift) -> list[PlaneAttractor]:
    """All attractors of ŵ' = (I − ŵ ŵᵀ) F(ŵ) on the circle, by the start of their basins.

    The circle is cut at the 2n boundaries arg x_j ± π/2 and at the zeros of the velocity between them. On each piece
    the angle moves one way. A basin ends where the motion parts.
    """
    require(
        len(field.inputs) > 0,
        "the residuals of equal inputs cancel, so that no neuron moves",
        argument="residuals",
        value=0.0,
        remedy="pass residuals that vary with the inputs",
    )
    towards = np.arctan2(field.inputs[:, 1], field.inputs[:, 0])

    def drift_at(angle: float) -> np.ndarray:
        return field.over(np.cos(angle - towards) > 0)

    nodes, boundary = _cut(towards, drift_at)
    count = len(nodes)
    ends = np.append(nodes[1:], nodes[0] + 2 * np.pi)
    drifts = np.array([drift_at(middle) for middle in (nodes + ends) / 2])

    def velocity(piece: int, angle: float) -> float:
        value = float(drifts[piece] @ [-np.sin(angle), np.cos(angle)])
        return value if abs(value) > field.zero else 0.0

    motion = np.array([np.sign(velocity(k, (nodes[k] + ends[k]) / 2)) for k in range(count)]).astype(int)
    found = []
    edges = [k for k in range(count) if _parts(motion, k, velocity(k - 1, nodes[k]), velocity(k, nodes[k]))]
    for first, following in zip(edges, [*edges[1:], edges[0] + count], strict=True):
        pieces = np.arange(first, following)
        moves = motion[pieces % count]
        stop = following if np.all(moves > 0) else first + int(np.argmax(moves <= 0))
        last = pieces[-1] % count
        begin, finish = nodes[first], ends[last] + (2 * np.pi if last < first else 0.0)
        if np.any(moves == 0):
            still = (first + int(np.argmax(moves == 0))) % count
            angle, kind = (nodes[still] + ends[still]) / 2, "dead"
        else:
            angle = nodes[stop % count]
            both = bool(np.any(moves > 0) and np.any(moves < 0))
            kind = ("kink" if both else "semi-stable") if boundary[stop % count] else "interior"
        found.append(PlaneAttractor(float(angle % (2 * np.pi)), kind, float(begin), float(finish)))
    return found


def _cut(towards: np.ndarray, drift_at) -> tuple[np.ndarray, np.ndarray]:
    """Sorted angles of the boundaries and of the zeros of the velocity, and which of them are boundaries."""
    angles = np.sort(np.concatenate([towards + np.pi / 2, towards - np.pi / 2]) % (2 * np.pi))
    angles = angles[np.append(True, np.diff(angles) > _SAME_ANGLE)]
    if angles[0] + 2 * np.pi - angles[-1] <= _SAME_ANGLE:
        angles = angles[:-1]
    zeros = []
    for begin, end in zip(angles, np.append(angles[1:], angles[0] + 2 * np.pi), strict=True):
        drift = drift_at((begin + end) / 2)
        if drift.any():
            aim = np.arctan2(drift[1], drift[0])
            for candidate in (aim, aim + np.pi):
                offset = (candidate - begin) % (2 * np.pi)
                if _SAME_ANGLE < offset < end - begin - _SAME_ANGLE:
                    zeros.append((begin + offset) % (2 * np.pi))
    nodes = np.concatenate([angles, zeros])
    order = np.argsort(nodes)
    return nodes[order], (np.arange(len(nodes)) < len(angles))[order]


def _parts(motion: np.ndarray, k: int, arriving: float, leaving: float) -> bool:
    """Whether the motion parts at node k: what lies before it and what lies after it end elsewhere."""
    before, after = motion[k - 1], motion[k]
    if before > 0 and after > 0:
        return not (arriving > 0 and leaving > 0)
    if before < 0 and after < 0:
        return not (arriving < 0 and leaving < 0)
    return bool(before <= 0 and after >= 0 and (before, after) != (0, 0))
