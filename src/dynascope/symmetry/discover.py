"""Conservation laws of a function found from its gradients alone, with nothing known of what is inside."""

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
from dynascope.validation import require, said_bytes
from dynascope.validation.bounded_scalars import PositiveFloat, Seed

__all__ = ["Discovery", "discover"]

_MOST = 60  # parameters; the unknowns of a generator grow with their square, and time with its cube
_ALL = 500  # unknowns of a generator of any kind, beyond which only symmetric and antisymmetric ones are looked for
_DEEPEST = 6  # levels of brackets
_MORE, _SPARE = 1.4, 20  # so many times the unknowns, and so many more, are the points
_DEAD = 1e-10  # gradients so much smaller than the others are rounding
_LAW = 1e-7  # rounding of a null vector at new points


@dataclasses.dataclass(frozen=True, eq=False)
class Discovery:
    """What gradients of a function show that its training conserves, for every loss and all data.

    Attributes:
        ranks: Dimension of what the gradient fields span, then with brackets of each further level.
        laws: Number of independent conservation laws, elements less the last rank; None without brackets.
        charges: Number of independent quadratic and linear charges; fewer than `laws` where some have another form.
        generators: Fields Gθ + c with G = Gᵀ, over the flat parameters, whose charges are ½ θᵀGθ + cᵀθ. There may be
            more of them than independent charges, as products of linear charges are conserved too.
        rotations: Number of antisymmetric generators, which conserve nothing under gradient flow.
        affine: Number of generators of any kind; None where it was not asked for.
        dead: Which elements have no gradient; each is conserved, and counted in `laws` and `charges`.
        theta: The point at which charges were counted.
        memory: Bytes that it took, by estimate.
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
    """The conservation laws of gradient flow of every loss of a function, from its gradients at random points.

    Two passes. A law is constant along all fields ∇(r·f(x; θ)), and so along their Lie brackets: elements less the
    dimension that these span is the number of laws, of any form. Laws of an explicit form, Q = ½ θᵀGθ + cᵀθ, are the
    null vectors of ⟨∇f(x; θ), Gθ + c⟩ = 0 over many points; they are held against new points before they are returned.
    Ranks need inputs that meet every activation pattern: random ones are wide, and `example_inputs` says their shape.
    It takes cubes of D²/2 operations: 40 parameters take seconds. Of larger ones `discover_blocks` asks less.

    Args:
        apply: (params, inputs) → outputs, which the loss is computed from; log-probabilities if it is a cross-entropy.
        params: A tree; its arrays of floating-point numbers are the parameters, at most 60 numbers.
        example_inputs: Inputs as `apply` takes them, of any number.
        levels: Levels of brackets at most; of each the derivatives are one order higher, and compiling takes longer. At
            zero only charges of the explicit form are counted.
        seed: Seed of the random points.
        memory: Bytes that it may take.

    Raises:
        InputError: Too many parameters, more memory than allowed, `apply` cannot be called, or a rank is ambiguous: the
            error tells the singular values.

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
        f"params has {dimension} numbers, and {_MOST} are the most",
        argument="params",
        value=dimension,
        remedy="call discover_blocks, or structure, or give a smaller network of the same kind",
    )
    # The rows of the largest linear system, four times.
    needed = 4 * 8 * _points(dimension) * max(unknowns(dimension, kind) for kind in _kinds(dimension))
    require(
        needed <= memory,
        f"{said_bytes(needed)} are needed, and memory is {said_bytes(memory)}",
        argument="memory",
        value=memory,
        remedy="allow more, or give a smaller network of the same kind",
    )
    widest = _points(dimension)
    theta, gradients = flat_gradients(model, points(model, point, widest, seed), seed)
    alive = np.abs(gradients).max(0) > _DEAD * np.abs(gradients).max()
    theta, gradients = theta[:, alive], gradients[:, alive]
    found = {kind: affine_generators(theta, gradients, kind) for kind in _kinds(dimension)} if alive.any() else {}
    # As many points as before, so that one program serves both.
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
    """Refuse null vectors that new points do not confirm: the points were too few kinds, or too near each other."""
    for matrix, shift in zip(*generators, strict=True):
        along = theta @ matrix.T + shift
        sizes = np.linalg.norm(gradients, axis=1) * np.linalg.norm(along, axis=1)
        defect = float((np.abs((gradients * along).sum(1)) / np.maximum(sizes, 1e-300)).max())
        require(
            defect <= _LAW,
            f"the rank of the {kind} generators is ambiguous: one fails at new points by {defect:.1e}",
            argument="example_inputs",
            value=defect,
            remedy="give wider and more inputs, so that all activation patterns are met",
        )


def _embedded(generators: Generators, alive: np.ndarray) -> Generators:
    """The generators over all elements."""
    count, size = len(generators.shifts), alive.size
    matrices, shifts = np.zeros((count, size, size)), np.zeros((count, size))
    if count:
        matrices[:, *np.ix_(alive, alive)] = generators.matrices
        shifts[:, alive] = generators.shifts
    return Generators(matrices, shifts)
