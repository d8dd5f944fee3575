"""Find symmetries of a wide network from its gradients, for one set of equally long axes at a time."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.parameters import Model, Point, points, projected_gradients, read
from dynascope.validation import formatted_bytes, require
from dynascope.validation.bounded_scalars import PositiveFloat, Seed

__all__ = ["BlockDiscovery", "discover_blocks"]

_SPARE = 12  # gradients beyond the number of axes that a block acts on; units may be inactive at some points
_ZERO = 1e-8  # relative size of rounding errors; singular values slightly above it are reported as unclear
_DEAD = 1e-10
_CHUNK = 20_000  # pairs of units that are analysed together

# A parameter and one of its axes.
_Slot = tuple[int, int]


@dataclasses.dataclass(frozen=True, eq=False)
class BlockDiscovery:
    """Symmetries that act on the units along axes of equal length, found from gradients.

    Attributes:
        units: By axis length, the number of rescalings of individual units that leave the outputs unchanged.
        pairs: By axis length, the number of pairs of units that mix.
        translations: Number of sums of elements along an axis that have no gradient, excluding dead elements.
        wholes: Number of rescalings of whole parameters that are not rescalings of individual units, e.g. before a
            layer norm.
        dead: Number of elements without a gradient.
        charges: Number of independent charges of all symmetries together.
        unclear: By axis length, the number of units that are not counted, because their singular values have no gap.
        memory: Estimated peak memory in bytes.
    """

    units: dict[int, np.ndarray]
    pairs: dict[int, int]
    translations: int
    wholes: int
    dead: int
    charges: int
    unclear: dict[int, int]
    memory: int

    __repr__ = short_repr


def discover_blocks(
    apply: Callable[[Any, Any], Any], params: Any, example_inputs: Any, *, seed: Seed = 0, memory: PositiveFloat = 4e9
) -> BlockDiscovery:
    """Find the symmetries that act on the units of a wide network, from its gradients at random points.

    A generator combines units i and j of all axes of one length, with one factor per axis. The derivative of a loss
    along the generator is Σ factor · ⟨∂L/∂θ_i, θ_j⟩. The factors for each pair of units are therefore the null vectors
    of a small matrix with one row per random point. The method assumes that the units are in the same order in all
    parameters. The order differs if a reshape intervenes or if a loop reads layers from a stack; `find_symmetries` does
    not make this assumption.

    Cost: one gradient per axis of the most frequent axis length, plus twelve. Memory: the gradients with their points,
    and one matrix (units × units) per gradient and axis of one length.

    Args:
        apply: (params, inputs) → outputs from which the loss is computed; log-probabilities for a cross-entropy.
        params: A tree whose floating-point arrays are the parameters.
        example_inputs: Inputs in the format that `apply` takes. With few inputs, some units may never be active.
        seed: Seed of the random points.
        memory: Maximum memory in bytes.

    Raises:
        InputError: If more memory is needed than allowed, or if `apply` cannot be called.

    References:
        Abide by the Law and Follow the Flow, arXiv:2307.00144.

    Example:
        >>> import jax
        >>> import numpy as np
        >>> params = {"in": np.ones((3, 5)), "out": np.ones((5, 2))}
        >>> relu = lambda p, x: jax.nn.relu(x @ p["in"]) @ p["out"]
        >>> found = discover_blocks(relu, params, np.ones((20, 3)))
        >>> found.charges, found.units[5].tolist(), found.pairs[5]
        (5, [1, 1, 1, 1, 1], 0)
    """
    model, point = read(apply, params, example_inputs)
    shapes = [each.shape for each in point[0]]
    needed = _memory(shapes)
    require(
        needed <= memory,
        f"memory is {formatted_bytes(memory)}, but {formatted_bytes(needed)} is needed",
        argument="memory",
        value=memory,
        remedy="increase memory, or call find_symmetries, which requires only a few gradients",
    )
    slots = _slots(shapes)
    samples = _Samples(model, point, max([*map(len, slots.values()), len(shapes)]) + _SPARE, seed)
    dead, translations = _unseen(samples)
    units, pairs, unclear, found = {}, {}, {}, []
    for length, members in slots.items():
        single, null = _diagonal(samples, length, members)
        units[length], unclear[length] = single, int((single < 0).sum())
        found += [(members, unit, vector) for unit, vectors in null for vector in vectors]
        pairs[length] = sum(_mixing(samples, length, members, np.flatnonzero(single > 0)))
    wholes = _wholes(samples)
    counted = _count(shapes, slots, found, wholes)
    return BlockDiscovery(
        units={length: np.maximum(each, 0) for length, each in units.items()},
        pairs=pairs,
        translations=translations,
        wholes=counted - _count(shapes, slots, found, np.zeros((0, len(shapes)))),
        dead=dead,
        charges=counted + sum(pairs.values()) + translations + dead,
        unclear=unclear,
        memory=needed,
    )


def _slots(shapes: Sequence[tuple[int, ...]]) -> dict[int, list[_Slot]]:
    found: dict[int, list[_Slot]] = {}
    for number, shape in enumerate(shapes):
        for axis, length in enumerate(shape):
            if length > 1:
                found.setdefault(length, []).append((number, axis))
    return found


def _memory(shapes: Sequence[tuple[int, ...]]) -> int:
    slots = _slots(shapes)
    points_held = max([*map(len, slots.values()), len(shapes)], default=1) + _SPARE
    gradients = 2 * points_held * sum(int(np.prod(shape, dtype=int)) for shape in shapes)
    matrices = max(
        ((len(each) + _SPARE) * len(each) * length**2 for length, each in slots.items() if len(each) > 1), default=0
    )
    return 8 * (gradients + matrices)


class _Samples:
    """Parameters and gradients at random points."""

    def __init__(self, model: Model, point: Point, count: int, seed: int):
        chosen = points(model, point, count, seed)
        self.theta = [each[0] for each in chosen]
        self.gradients = list(projected_gradients(model, chosen, seed))
        sizes = [float(np.sqrt(sum(np.vdot(g, g) for g in each))) for each in self.gradients]
        # If no unit is active at a point, its gradient is zero.
        self.size = [max(each, np.finfo(float).tiny) for each in sizes]

    def products(self, slot: _Slot, count: int) -> np.ndarray:
        """Compute ⟨∂L/∂θ_i, θ_j⟩ for all slices i and j along an axis, at the first `count` points."""
        number, axis = slot
        found = []
        for theta, gradient, size in list(zip(self.theta, self.gradients, self.size, strict=True))[:count]:
            rows = (np.moveaxis(each[number], axis, 0) for each in (gradient, theta))
            g, t = (each.reshape(len(each), -1) for each in rows)
            found.append(g @ t.T / size)
        return np.stack(found)

    def along(self, slot: _Slot) -> np.ndarray:
        """Compute ⟨∂L/∂θ_i, θ_i⟩ of each unit, shape (points, units)."""
        number, axis = slot
        others = tuple(each for each in range(self.theta[0][number].ndim) if each != axis)
        pairs = zip(self.theta, self.gradients, self.size, strict=True)
        return np.stack([(g[number] * t[number]).sum(others) / size for t, g, size in pairs])

    def seen(self, slot: _Slot) -> np.ndarray:
        """Return a mask of the units of an axis that have a gradient."""
        number, axis = slot
        others = tuple(each for each in range(self.gradients[0][number].ndim) if each != axis)
        largest = [
            np.abs(each[number]).max(others) / size for each, size in zip(self.gradients, self.size, strict=True)
        ]
        return np.max(largest, axis=0) > _DEAD


def _unseen(samples: _Samples) -> tuple[int, int]:
    """Count the elements, and the sums of elements along an axis, that have no gradient."""
    dead = translations = 0
    for number in range(len(samples.theta[0])):
        rows = np.stack([each[number] / size for each, size in zip(samples.gradients, samples.size, strict=True)])
        largest = np.abs(rows).max(0)
        still = largest <= _DEAD
        dead += int(still.sum())
        for axis in range(still.ndim):
            sums = np.abs(rows.sum(axis + 1)).max(0)
            translations += int(((sums <= _DEAD * still.shape[axis]) & ~still.all(axis)).sum())
    return dead, translations


def _diagonal(samples: _Samples, length: int, members: list[_Slot]) -> tuple[np.ndarray, list[tuple[int, np.ndarray]]]:
    """Count the rescalings of each individual unit (−1 if unclear), and return their null vectors."""
    rows = np.stack([samples.along(each) for each in members], -1)
    visible = np.stack([samples.seen(each) for each in members], -1)
    counts, null = np.zeros(length, int), []
    for unit in range(length):
        each = rows[:, unit]
        # Axes without a gradient are dead and must not count as null vectors.
        seen = visible[unit]
        if not seen.any():
            continue
        _, values, right = np.linalg.svd(each[:, seen])
        zero = values <= _ZERO
        if (~zero & (values < _ZERO**0.75)).any():
            counts[unit] = -1
            continue
        counts[unit] = int(zero.sum())
        whole = np.zeros((counts[unit], len(members)))
        whole[:, seen] = right[len(values) - counts[unit] :]
        if counts[unit]:
            null.append((unit, whole))
    return counts, null


def _mixing(samples: _Samples, length: int, members: list[_Slot], units: np.ndarray) -> Iterator[int]:
    """Yield, in chunks, the numbers of pairs of units that mix, i.e. of their symmetric generators."""
    if len(units) < 2 or len(members) < 2:
        return
    count = len(members) + _SPARE
    matrices = [samples.products(each, count) for each in members]
    visible = np.stack([samples.seen(each) for each in members], -1)
    pairs = np.array(list(itertools.combinations(units, 2)))
    for start in range(0, len(pairs), _CHUNK):
        i, j = pairs[start : start + _CHUNK].T
        rows = np.stack([each[:, i, j] + each[:, j, i] for each in matrices], -1).transpose(1, 0, 2)
        # Axes that are dead for both units do not count as generators.
        seen = visible[i] | visible[j]
        zero = (np.linalg.svd(rows, compute_uv=False) <= _ZERO).sum(1)
        yield int(np.maximum(zero - (~seen).sum(1), 0).sum())


def _wholes(samples: _Samples) -> np.ndarray:
    """Compute the factors of whole parameters that can be rescaled together, shape (n, parameters)."""
    rows = np.array([
        [np.vdot(g, t) / size for g, t in zip(gradient, theta, strict=True)]
        for gradient, theta, size in zip(samples.gradients, samples.theta, samples.size, strict=True)
    ])  # fmt: skip
    seen = np.array([
        max(np.abs(each[k]).max() / size for each, size in zip(samples.gradients, samples.size, strict=True)) > _DEAD
        for k in range(rows.shape[1])
    ])  # fmt: skip
    _, values, right = np.linalg.svd(rows[:, seen])
    zero = values <= _ZERO
    found = np.zeros((int(zero.sum()), len(seen)))
    found[:, seen] = right[len(values) - len(found) :]
    return found


def _count(
    shapes: Sequence[tuple[int, ...]],
    slots: dict[int, list[_Slot]],
    found: list[tuple[list[_Slot], int, np.ndarray]],
    wholes: np.ndarray,
) -> int:
    """Count the independent rescalings, without double counting of constants that axes and whole parameters share.

    The exponent of an element is a sum of one term per axis and one term for its parameter; a constant can be moved
    between terms.
    """
    starts = dict(zip(
        [slot for members in slots.values() for slot in members],
        np.cumsum([0, *(length for length, members in slots.items() for _ in members)]),
        strict=False,
    ))  # fmt: skip
    whole = sum(length * len(members) for length, members in slots.items())
    size = whole + len(shapes)
    rows, same = [], []
    for members, unit, vector in found:
        row = np.zeros(size)
        for slot, factor in zip(members, vector, strict=True):
            row[starts[slot] + unit] = factor
        rows.append(row)
    for number, shape in enumerate(shapes):
        for axis in (axis for axis, length in enumerate(shape) if length > 1):
            row = np.zeros(size)
            row[whole + number] = -1.0
            row[starts[number, axis] : starts[number, axis] + shape[axis]] = 1.0
            same.append(row)
    rows += [np.concatenate([np.zeros(whole), factors]) for factors in wholes]

    def rank(each: list[np.ndarray]) -> int:
        return int(np.linalg.matrix_rank(np.array(each), tol=_ZERO**0.5)) if each else 0

    return rank([*rows, *same]) - rank(same)
