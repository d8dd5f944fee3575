"""All extremal directions and basins for inputs in the plane, by a scan of the circle."""

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

# Boundaries closer than this (in radians) count as one.
_SAME_ANGLE = 1e-12


class PlaneAttractor(NamedTuple):
    """An extremal direction in the plane and its basin, an arc of initial angles.

    Attributes:
        angle: Angle of the extremal direction, in [0, 2π).
        kind: "interior", "kink", "semi-stable" or "dead".
        start: Angle at which the basin begins, in [0, 2π).
        end: Angle at which the basin ends; start < end ≤ start + 2π.
    """

    angle: float
    kind: ExtremalKind
    start: float
    end: float


@in_units("drift", drift="t^-1", times="t")
def angle_within_arc(
    start: FiniteNumbers, drift: IsFinite[Float[np.ndarray, " 2"]], times: NonNegativeNumbers
) -> Float[np.ndarray, ...]:
    """Compute the angle of a neuron in the plane, as long as its active samples do not change.

    tan((φ(t) − φ_F)/2) = tan((φ(0) − φ_F)/2) exp(−‖F‖ t)

    The formula solves φ' = −‖F‖ sin(φ − φ_F) for the constant drift F = sign(a) E[r x; w·x > 0] with angle φ_F.

    Args:
        start: φ(0) in radians, any shape.
        drift: F, shape (2,).
        times: Gradient-flow times t ≥ 0; their shape broadcasts with that of `start`.

    Returns:
        φ(t), within π of φ(0), in the broadcast shape.

    Raises:
        InputError: If a value is not finite, a time is negative, or the drift is not a vector in the plane.

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
    # With sine and cosine of the half angle, the point opposite to the drift, where the tangent is infinite, is fixed.
    left = 2 * np.arctan2(np.sin(away / 2) * np.exp(-speed * time), np.cos(away / 2))
    return first + (left - away)


def attractors_in_plane(field: FrozenDrift) -> list[PlaneAttractor]:
    """Return all attractors of ŵ' = (I − ŵ ŵᵀ) F(ŵ) on the circle, sorted by the start of their basins.

    The circle is divided at the 2n boundaries arg x_j ± π/2 and at the zeros of the velocity between them. On each
    piece, the angle moves in one direction. A basin ends at an angle from which the motion diverges.
    """
    require(
        len(field.inputs) > 0,
        "the residuals of identical inputs cancel, so the drift is zero",
        argument="residuals",
        value=0.0,
        remedy="give residuals that do not cancel on identical inputs",
    )
    towards = np.arctan2(field.inputs[:, 1], field.inputs[:, 0])

    def drift_at(angle: float) -> np.ndarray:
        return field.over(np.cos(angle - towards) > 0)

    nodes, boundary = _nodes(towards, drift_at)
    count = len(nodes)
    ends = np.append(nodes[1:], nodes[0] + 2 * np.pi)
    drifts = np.array([drift_at(middle) for middle in (nodes + ends) / 2])

    def velocity(piece: int, angle: float) -> float:
        value = float(drifts[piece] @ [-np.sin(angle), np.cos(angle)])
        return value if abs(value) > field.zero else 0.0

    motion = np.array([np.sign(velocity(k, (nodes[k] + ends[k]) / 2)) for k in range(count)]).astype(int)
    found = []
    edges = [k for k in range(count) if _diverges(motion, k, velocity(k - 1, nodes[k]), velocity(k, nodes[k]))]
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


def _nodes(towards: np.ndarray, drift_at) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted angles of the boundaries and of the zeros of the velocity, and which of them are boundaries."""
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


def _diverges(motion: np.ndarray, k: int, arriving: float, leaving: float) -> bool:
    """Whether the motion diverges at node k, which then separates two basins."""
    before, after = motion[k - 1], motion[k]
    if before > 0 and after > 0:
        return not (arriving > 0 and leaving > 0)
    if before < 0 and after < 0:
        return not (arriving < 0 and leaving < 0)
    return bool(before <= 0 and after >= 0 and (before, after) != (0, 0))
