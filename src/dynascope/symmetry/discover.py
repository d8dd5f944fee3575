"""Discover the conservation laws of a function from its gradients, without reading its program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from annotated_types import Interval

from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.affine import Generators, affine_generators, independent, unknowns
from dynascope.symmetry.lie_brackets import bracket_ranks, flat_gradients
from dynascope.symmetry.parameters import points, read
from dynascope.validation import formatted_bytes, require
from dynascope.validation.bounded_scalars import PositiveFloat, Seed

__all__ = ["Discovery", "discover"]

_MOST = 60  # parameters; a generator has about D² unknowns, and the time grows with the cube of that
_ALL = 500  # unknowns of an unrestricted generator; above this, only symmetric and antisymmetric ones are sought
_DEEPEST = 6  # levels of brackets
_MORE, _SPARE = 1.4, 20  # number of points: _MORE times the number of unknowns, plus _SPARE
_DEAD = 1e-10  # gradients smaller than this, relative to the largest, are rounding errors
_LAW = 1e-7  # rounding error of a null vector at new points


@dataclasses.dataclass(frozen=True, eq=False)
class Discovery:
    """The conservation laws that hold for every loss and all data, as the gradients of a function imply.

    Attributes:
        ranks: Dimension of the span of the gradient fields, then of the span that includes the brackets of each further
            level.
        laws: Number of independent conservation laws: the number of elements minus the last rank. None without
            brackets.
        charges: Number of independent quadratic and linear charges; less than `laws` if some laws have another form.
        generators: Fields Gθ + c with G = Gᵀ over the flattened parameters, with charges ½ θᵀGθ + cᵀθ. There can be
            more generators than independent charges, because products of linear charges are also conserved.
        rotations: Number of antisymmetric generators, which do not conserve anything under gradient flow.
        affine: Number of generators with unrestricted G and c; None if there are too many unknowns.
        dead: Mask of the elements without a gradient; each of them is conserved and counted in `laws` and `charges`.
        theta: The point at which the charges were counted.
        memory: Estimated memory used, in bytes.
    """

    ranks: tuple[int, ...]
    laws: int | None
    charges: int
    generators: Generators
    rotations: int
    affine: int | None
    dead: np.ndarray
    theta: np.ndarray
    memory: int

    __repr__ = short_repr


def discover(
    apply: Callable[[Any, Any], Any],
    params: Any,
    example_inputs: Any,
    *,
    levels: Annotated[int, Interval(ge=0, le=_DEEPEST)] = 6,
    seed: Seed = 0,
    memory: PositiveFloat = 4e9,
) -> Discovery:
    """Find the conservation laws of gradient flow that hold for every loss of a function, from its gradients.

    There are two passes. The first pass counts laws of any form. A law is constant along all fields ∇(r·f(x; θ)), and
    therefore along their Lie brackets. The number of laws is therefore the number of elements minus the dimension of
    the span of fields and brackets. The second pass finds laws of the explicit form

        Q = ½ θᵀGθ + cᵀθ

    as the null vectors of ⟨∇f(x; θ), Gθ + c⟩ = 0 over many points, and verifies them at new points. The ranks are
    correct only if the inputs cover every activation pattern. The random inputs therefore have a wide distribution;
    `example_inputs` determines only their shape. The cost is of order (D²/2)³ operations for D parameters: 40
    parameters take seconds. For larger functions, `discover_blocks` is faster but less general.

    Args:
        apply: (params, inputs) → outputs from which the loss is computed; log-probabilities for a cross-entropy.
        params: A tree whose floating-point arrays are the parameters, at most 60 numbers in total.
        example_inputs: Inputs in the format that `apply` takes, with any number of examples.
        levels: Maximum number of bracket levels. Each level raises the order of the derivatives by one and increases
            the compilation time. With zero levels, only charges of the explicit form are counted.
        seed: Seed of the random points.
        memory: Maximum memory in bytes.

    Raises:
        InputError: If there are too many parameters, if more memory is needed than allowed, if `apply` cannot be
            called, or if a rank is ambiguous; in the last case, the error lists the singular values.

    References:
        Abide by the Law and Follow the Flow, arXiv:2307.00144.

    Example:
        >>> import numpy as np
        >>> params = {"a": np.ones(1), "b": np.ones(1)}
        >>> found = discover(lambda p, x: x * p["a"] * p["b"], params, np.ones((3, 1)))
        >>> found.ranks, found.laws, found.charges, np.abs(found.generators.matrices[0]).round(3).tolist()
        ((1, 1), 1, 1, [[0.707, 0.0], [0.0, 0.707]])
    """
    model, point = read(apply, params, example_inputs)
    dimension = sum(each.size for each in point[0])
    require(
        dimension <= _MOST,
        f"params contains {dimension} numbers, but at most {_MOST} are supported",
        argument="params",
        value=dimension,
        remedy="call discover_blocks or find_symmetries, or give a smaller network of the same kind",
    )
    # Four times the size of the largest linear system.
    needed = 4 * 8 * _points(dimension) * max(unknowns(dimension, kind) for kind in _kinds(dimension))
    require(
        needed <= memory,
        f"memory is {formatted_bytes(memory)}, but {formatted_bytes(needed)} is needed",
        argument="memory",
        value=memory,
        remedy="increase memory, or give a smaller network of the same kind",
    )
    widest = _points(dimension)
    theta, gradients = flat_gradients(model, points(model, point, widest, seed), seed)
    alive = np.abs(gradients).max(0) > _DEAD * np.abs(gradients).max()
    theta, gradients = theta[:, alive], gradients[:, alive]
    found = {kind: affine_generators(theta, gradients, kind) for kind in _kinds(dimension)} if alive.any() else {}
    # The same number of points as before, so that both calls share one compiled program.
    others = flat_gradients(model, points(model, point, widest, seed + 1), seed + 1)
    new, fresh = (each[: 2 * dimension] for each in others)
    for kind, each in found.items():
        _require_laws(each, new[:, alive], fresh[:, alive], kind)
    ranks = bracket_ranks(model, point, alive, levels, seed) if alive.any() and levels else ()
    symmetric = found.get("symmetric", Generators(np.zeros((0, 0, 0)), np.zeros((0, 0))))
    dead = int((~alive).sum())
    return Discovery(
        ranks=ranks,
        laws=dimension - ranks[-1] if ranks else None,
        charges=independent(symmetric, new[0, alive]) + dead,
        generators=_embedded(symmetric, alive),
        rotations=len(found["skew"].shifts) if found else 0,
        affine=len(found["all"].shifts) if "all" in found else None,
        dead=~alive,
        theta=new[0],
        memory=needed,
    )


def _kinds(dimension: int) -> tuple[str, ...]:
    return ("symmetric", "skew", "all") if unknowns(dimension, "all") <= _ALL else ("symmetric", "skew")


def _points(dimension: int) -> int:
    return int(_MORE * max(unknowns(dimension, kind) for kind in _kinds(dimension))) + _SPARE


def _require_laws(generators: Generators, theta: np.ndarray, gradients: np.ndarray, kind: str) -> None:
    """Raise `InputError` if the null vectors do not hold at new points.

    If a null vector fails at the new points, the first points were too few or too similar.
    """
    for matrix, shift in zip(*generators, strict=True):
        along = theta @ matrix.T + shift
        sizes = np.linalg.norm(gradients, axis=1) * np.linalg.norm(along, axis=1)
        defect = float((np.abs((gradients * along).sum(1)) / np.maximum(sizes, 1e-300)).max())
        require(
            defect <= _LAW,
            f"the rank of the {kind} generators is ambiguous, because one of them fails at new points by {defect:.1e}",
            argument="example_inputs",
            value=defect,
            remedy="give more inputs with a wider distribution, so that every activation pattern occurs",
        )


def _embedded(generators: Generators, alive: np.ndarray) -> Generators:
    """Extend the generators from the elements with a gradient to all elements, with zeros."""
    count, size = len(generators.shifts), alive.size
    matrices, shifts = np.zeros((count, size, size)), np.zeros((count, size))
    if count:
        matrices[:, *np.ix_(alive, alive)] = generators.matrices
        shifts[:, alive] = generators.shifts
    return Generators(matrices, shifts)
