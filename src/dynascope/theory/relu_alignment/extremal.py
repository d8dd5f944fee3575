"""Extremal directions: the finitely many directions towards which small ReLU neurons turn."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ONE_OUTPUT, SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.relu_alignment.path import (
    ExtremalKind,
    FrozenDrift,
    Inputs,
    OneColumn,
    single_output,
    trajectory_from,
)
from dynascope.theory.relu_alignment.plane import attractors_in_plane
from dynascope.theory.units import in_units
from dynascope.validation import require
from dynascope.validation.bounded import PositiveInt, Seed

__all__ = ["ExtremalDirections", "extremal_directions"]

# Trajectories whose ends are closer than this converge to the same direction; ends are exact up to rounding.
_SAME_DIRECTION = 1e-7


@dataclasses.dataclass(frozen=True)
class ExtremalDirections:
    """The directions towards which small neurons turn, those with positive output weights first.

    Attributes:
        signs: Sign of the output weight of the neurons that turn towards each direction, shape (k,).
        directions: Unit directions of the input weights, shape (k, d). A neuron of the kind "dead" keeps its direction,
            and only one of the possible directions is listed; in the plane, it is the middle of their arc.
        kinds: "interior", "kink", "semi-stable" or "dead", one per direction.
        rates: d log‖θ‖/dt of a balanced neuron (|a| = ‖w‖) at each direction, shape (k,); negative if the neuron
            decays. The first jump of the loss is at t ≈ log(1/scale) / max rate.
        shares: Fraction of all initial directions from which neurons converge to each direction, shape (k,); for each
            sign, the fractions add up to one.
        basins: In the plane, the arc of initial angles from which neurons converge to each direction, shape (k, 2);
            None in other dimensions. Each arc begins in [0, 2π) and spans at most 2π.
    """

    signs: Float[np.ndarray, " k"]
    directions: Float[np.ndarray, "k d"]
    kinds: tuple[ExtremalKind, ...]
    rates: Float[np.ndarray, " k"]
    shares: Float[np.ndarray, " k"]
    basins: Float[np.ndarray, "k 2"] | None

    __repr__ = short_repr

    @property
    def angles(self) -> Float[np.ndarray, " k"]:
        """Angles of the directions in the plane, in [0, 2π)."""
        require(
            self.directions.shape[1] == 2,
            f"the directions have dimension {self.directions.shape[1]}",
            argument="directions",
            value=self.directions.shape[1],
            remedy="use angles only for inputs in the plane",
        )
        return np.arctan2(self.directions[:, 1], self.directions[:, 0]) % (2 * np.pi)


@covers(
    network="two-layer ReLU, one output",
    data="any (exact in the plane)",
    start="small",
    gives="the directions with which neurons align, and their basins",
    reference="arXiv:1803.08367",
    exact=False,
    assumes=(ONE_OUTPUT, SMALL_START),
)
@in_units("residuals", "inputs", inputs="x", residuals="y", gives={"rates": "x y"})
def extremal_directions(
    inputs: Inputs,
    residuals: OneColumn,
    *,
    starts: PositiveInt = 500,
    seed: Seed = 0,
) -> ExtremalDirections:
    """Find the directions towards which the neurons a·relu(w·x) of a small network turn before the loss decreases.

    While the residuals r are frozen, a balanced neuron (|a| = ‖w‖) ascends sign(a)·G(ŵ), G(w) = E[r relu(w·x)], on the
    sphere (see `alignment_path`). With the drift D(w) = E[r x; w·x > 0], the neuron converges to one of finitely many
    directions. These directions depend only on the data, not on the width of the network:

    - "interior": ŵ = sign(a) D/‖D‖ with no sample on the boundary of the neuron; the neuron grows at the rate ‖D‖.
    - "kink": ŵ·x_j = 0 for some j, and the drift on both sides points towards this boundary.
    - "semi-stable": ŵ·x_j = 0 for some j, and only neurons from one side converge (as with orthogonal inputs).
    - "dead": the neuron is at rest, because no sample is active or the active samples balance each other.

    In the plane, the function finds all directions and their basins. In other dimensions, it computes the exact
    trajectories of neurons with random initial directions; it may miss a direction to which only a small fraction of
    these neurons converges.

    Args:
        inputs: x, shape (n, d); append a column of ones for a bias.
        residuals: r, shape (n,) or (n, 1); for a small network, these are the targets.
        starts: Number of random initial directions per sign, used if d is not 2.
        seed: Random seed of the initial directions, an integer ≥ 0.

    Returns:
        The directions for a > 0, followed by those for a < 0. Each group is sorted by decreasing share, or by angle in
        the plane.

    Raises:
        InputError: If shapes do not match, a value is not finite, there are several outputs, or all residuals vanish.

    References:
        Maennel, Bousquet, Gelly, Gradient descent quantizes ReLU network features, arXiv:1803.08367.

    Example:
        >>> found = extremal_directions(np.eye(2), np.array([2.0, -1.0]))
        >>> found.signs.tolist(), found.kinds
        ([1.0, 1.0, -1.0, -1.0], ('kink', 'dead', 'kink', 'dead'))
    """
    r = single_output(inputs, residuals)
    search = _in_plane if inputs.shape[1] == 2 else _from_starts
    parts = [search(FrozenDrift.of(inputs, r, sign), starts, seed) for sign in (1, -1)]
    signs = np.repeat([1.0, -1.0], [len(part["kinds"]) for part in parts])
    kinds = parts[0].pop("kinds") + parts[1].pop("kinds")
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return ExtremalDirections(signs=signs, kinds=kinds, basins=joined.pop("basins", None), **joined)


def _in_plane(field: FrozenDrift, starts: int, seed: int) -> dict:
    found = sorted(attractors_in_plane(field))
    angles = np.array([each.angle for each in found])
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    basins = np.array([(each.start, each.end) for each in found])
    alive = np.array([each.kind != "dead" for each in found])
    rates = directions @ field.constant + np.maximum(directions @ field.inputs.T, 0) @ field.pulls
    return {
        "directions": directions,
        "kinds": tuple(each.kind for each in found),
        "rates": np.where(alive, rates, 0.0),
        "shares": np.diff(basins, axis=1)[:, 0] / (2 * np.pi),
        "basins": basins,
    }


def _from_starts(field: FrozenDrift, starts: int, seed: int) -> dict:
    paths, counts = [], []
    for start in np.random.default_rng(seed).normal(size=(starts, field.inputs.shape[1])):
        path = trajectory_from(field, start / np.linalg.norm(start))
        same = next((k for k, other in enumerate(paths) if _is_same(path, other)), None)
        if same is None:
            paths.append(path)
            counts.append(1)
        else:
            counts[same] += 1
    order = np.argsort(-np.array(counts), kind="stable")
    return {
        "directions": np.array([paths[k].end for k in order]),
        "kinds": tuple(paths[k].kind for k in order),
        "rates": np.array([paths[k].rate for k in order]),
        "shares": np.array(counts)[order] / starts,
    }


def _is_same(path, other) -> bool:
    if path.kind == "dead" or other.kind == "dead":
        return path.kind == other.kind
    return bool(np.linalg.norm(path.end - other.end) < _SAME_DIRECTION)
