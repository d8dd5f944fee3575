"""Find symmetries of a function of parameters in its program, and verify them against its gradients."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.interpreters.partial_eval import dce_jaxpr

from dynascope.compilation.frameworks import also_in_pytorch
from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.added_constants import adds_constants, without_constants
from dynascope.symmetry.charge import Charge
from dynascope.symmetry.families import families
from dynascope.symmetry.independence import independent_charges, not_contained
from dynascope.symmetry.mixing import mixing_units
from dynascope.symmetry.parameters import Model, Point, points, projected_gradients, read
from dynascope.symmetry.program_loops import bodies
from dynascope.symmetry.residual import affine_charge, residual_charges
from dynascope.symmetry.residual_charge import AffineCharge
from dynascope.symmetry.scaling import exact_and_relaxed, rescalings
from dynascope.symmetry.symmetry_defects import defects, holds_globally
from dynascope.symmetry.translations import is_used, translations
from dynascope.validation.bounded_scalars import Seed

__all__ = ["BrokenSymmetry", "SymmetryStructure", "find_symmetries"]

_POINTS = 3  # random points for gradients; a ReLU unit that is inactive at all of them counts as dead
_EXACT = 1e-9  # rounding error of a derivative along a symmetry, relative to ‖g‖ ‖ξ‖


@dataclasses.dataclass(frozen=True, eq=False)
class BrokenSymmetry:
    """An approximate or suspected symmetry that does not hold, with the size of its violation.

    Attributes:
        charge: The symmetry and its charges.
        defect: For each unit, the largest observed |⟨g, ξ⟩| / (‖g‖ ‖ξ‖), where g is the gradient of a random
            combination of the outputs and ξ is the symmetry direction. If the ε of a normalisation layer breaks the
            symmetry, the defect is evaluated at the given point; otherwise, at random points.
        reason: Why the symmetry does not hold.

    Example:
        >>> import jax
        >>> def normed(w, x):
        ...     h = x @ w
        ...     return h * jax.lax.rsqrt((h**2).mean(-1, keepdims=True) + 1e-3)
        >>> (broken,) = find_symmetries(normed, np.eye(3), np.ones((4, 3))).broken
        >>> broken.charge.kind, broken.reason
        ('scale', 'ε of a norm')
    """

    charge: Charge
    defect: np.ndarray
    reason: str

    __repr__ = short_repr


@dataclasses.dataclass(frozen=True, eq=False)
class SymmetryStructure:
    """The symmetries of a function of its parameters.

    Attributes:
        symmetries: The symmetries that hold, in the order in which the program reads their parameters.
        broken: Symmetries that the ε of a normalisation layer breaks, and symmetries of the program that its gradients
            violate.
        rounding: The largest |⟨g, ξ⟩| / (‖g‖ ‖ξ‖) of any symmetry that holds, at random points.
        unused: Paths of parameters that no output depends on; all their elements are conserved.
        shapes: The tree of parameter shapes.
        affine: Symmetries that are linear after constants are added to parameters, e.g. to a learned bias.
    """

    symmetries: tuple[Charge, ...]
    broken: tuple[BrokenSymmetry, ...]
    rounding: float
    unused: tuple[str, ...]
    shapes: Any = dataclasses.field(repr=False)
    affine: tuple[AffineCharge, ...] = ()

    __repr__ = short_repr

    @functools.cached_property
    def size(self) -> int:
        """Number of independent charges of all symmetries: the rank of their Jacobian at random weights.

        The number of independent charges is at most the number of `names`. If symmetries that share parameters have
        more than 1000 charges, the result is only an upper bound, because dependences between symmetries are not
        computed.
        """
        return independent_charges([*self.symmetries, *(each.charge for each in self.affine)], self.shapes)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each charge along the dimension `charge`; repeated names are numbered."""
        met: Counter[str] = Counter()
        found = []
        for each in self.symmetries:
            for name in each.names:
                met[name] += 1
                found.append(name if met[name] == 1 else f"{name} ({met[name]})")
        return tuple(found)

    @property
    def table(self) -> str:
        """One line per symmetry (kind, group, number of independent charges, parameters), then broken symmetries."""
        counts = [independent_charges([each], self.shapes) for each in self.symmetries]
        rows = [
            (each.kind, each.group, str(count), " ".join(each.paths))
            for each, count in zip(self.symmetries, counts, strict=True)
        ]
        rows += [
            (f"affine {own.kind}", own.group, str(independent_charges([own], self.shapes)), " ".join(own.paths))
            for own in (each.charge for each in self.affine)
        ]
        rows += [
            (f"broken {each.charge.kind}", each.reason, f"{each.defect.max():.1e}", " ".join(each.charge.paths))
            for each in self.broken
        ]
        rows += [("unused", "", "", path) for path in self.unused]
        if not rows:
            return "no symmetry was found"
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


@also_in_pytorch("dynascope.torch.symmetry.find_symmetries")
def find_symmetries(
    apply: Callable[..., Any], params: Any, example_inputs: Any, *, seed: Seed = 0
) -> SymmetryStructure:
    """Find the symmetries of a function, and the charges they conserve, by reading its program.

    The program is the JAX trace of the function, so any module library works. If parameters are multiplied by exp(t a),
    each value in the program is multiplied by exp(t d), with an exponent d that is linear in a. Additions equate the
    exponents of their operands, and products add them. The exponents of outputs must be zero, as must the exponents of
    arguments of functions that are not homogeneous. The exponents that remain free are all rescalings of elements. The
    same rules cover layers, convolutions with groups and strides, normalisation layers, homogeneous activations in any
    form, gates, attention with grouped queries and rotary positions, residual streams, tied weights, embeddings, and
    loops over stacked layers. Shifts are propagated in the same way. Units that mix linearly, as one gradient shows,
    are grouped into matrix symmetries. Finally, every symmetry is checked against gradients at random points. Only
    symmetries that hold up to rounding errors are returned.

    The following symmetries are not found; on a small network, `discover` finds them:

    - linear symmetries in a basis other than that of the units, e.g. behind a fixed matrix or a sort;
    - shifts that leave the sum of a parameter's elements unchanged, or shifts of weights whose inputs sum to zero, e.g.
      after a normalisation layer without a gain;
    - shifts through a variance that is written as a difference of means;
    - shifts that are compensated by more than one other parameter;
    - shifts that are compensated by a rescaling, e.g. b → b + s with c → c exp(−s) in c exp(a·x + b), which conserves
      b − c²/2 of each unit.

    Permutations and sign flips of units have no charge.

    Constants that the program adds, such as a query bias that is not learned, restrict a matrix symmetry to the
    matrices that leave the constants unchanged. The restricted symmetry and its charges are found. If the program adds
    a constant to a learned bias, the full symmetry remains, but it is affine; `affine` lists it. Constants inside loops
    and constants on both sides of a product are not analysed. A bias that varies between batches is not a constant:
    give it as an input, so that only symmetries for every bias are found.

    For PyTorch, the program is that of `torch.program`. A module is traced in its current mode. In training mode, batch
    norm uses the statistics of the example batch. In evaluation mode, batch norm uses the recorded statistics. The
    recorded statistics are constants, as are all buffers and all parameters that do not require a gradient. A tied
    weight is a single parameter. The path of a parameter is its path in {name: array}, with the names of
    `named_parameters`.

    Args:
        apply: (params, inputs) → outputs from which the loss is computed; log-probabilities for a cross-entropy.
            Alternatively, a `torch.nn.Module` with the same outputs.
        params: A tree whose floating-point arrays or tensors are the parameters. If `apply` is a `torch.nn.Module`,
            None selects the parameters of the module. If `apply` is a function that calls a module, give the module
            itself.
        example_inputs: Inputs in the format that `apply` takes; batch statistics are computed from this batch. For a
            `torch.nn.Module`, a tensor, a tuple of its arguments, or a dictionary of keyword arguments.
        seed: Seed of the random points.

    Raises:
        InputError: If `apply` cannot be called or has no real outputs, if parameters or inputs are not finite, or if
            `torch.program` cannot read a PyTorch module.

    References:
        Neural Mechanics, arXiv:2012.04728; Abide by the Law and Follow the Flow, arXiv:2307.00144.

    Example:
        >>> import numpy as np
        >>> import jax
        >>> params = {"in": np.ones((3, 2)), "out": np.ones((2, 1))}
        >>> found = find_symmetries(lambda w, x: jax.nn.relu(x @ w["in"]) @ w["out"], params, np.ones((4, 3)))
        >>> print(found.table)
        rescale  positive scales for each of 2 units  2  ['in'] ['out']
    """
    model, point = read(apply, params, example_inputs)
    program = traced(model, point)
    given = points(model, point, _POINTS, seed)
    gradients = list(projected_gradients(model, given, seed))
    found, relaxed = exact_and_relaxed(program, len(model.paths))
    exact = [part for each in families(found, model.paths) for part in mixing_units(each, model, given, gradients)]
    exact += translations(program, model.paths, gradients)
    tolerance = max(_EXACT, 1e3 * _coarsest(program))
    symmetries, broken, rounding = [], [], 0.0
    for each in exact:
        defect = defects(each, model, given, gradients)
        far = holds_globally(each, model, given[0], seed, 1e1 * tolerance)
        if far and defect.max(initial=0.0) <= tolerance:
            symmetries.append(each)
            rounding = max(rounding, float(defect.max(initial=0.0)))
        else:
            broken.append(BrokenSymmetry(each, defect, "gradients or values violate the symmetry of the program"))
    known = {_key(each) for each in exact}
    here = list(projected_gradients(model, [point], seed))
    for each in families(relaxed, model.paths):
        if _key(each) not in known and each.kind == "scale":
            broken.append(BrokenSymmetry(each, defects(each, model, [point], here), "ε of a norm"))
    residual, affine = _beside_constants(model, point, program, given, gradients, symmetries, seed)
    symmetries = [*not_contained(symmetries, residual, params), *residual]
    unused = tuple(path for number, path in enumerate(model.paths) if not is_used(program, number))
    shapes = jax.tree.map(_shape, params)
    return SymmetryStructure(tuple(symmetries), tuple(broken), rounding, unused, shapes, affine)


def _beside_constants(
    model: Model,
    point: Point,
    program: ClosedJaxpr,
    given: list[Point],
    gradients: list[tuple[np.ndarray, ...]],
    known: list[Charge],
    seed: int,
) -> tuple[list[Charge], tuple[AffineCharge, ...]]:
    """Return what remains of the matrix symmetries of the function without the constants that it adds."""
    if not adds_constants(program, len(model.paths)):
        return [], ()
    bare, tolerance = without_constants(model), max(_EXACT, 1e3 * _coarsest(program))
    try:
        slopes = list(projected_gradients(bare, given, seed))
        found = families(rescalings(traced(bare, point), len(model.paths)), model.paths)
        mixing = [part for each in found for part in mixing_units(each, bare, given, slopes) if part.kind == "matrix"]
    except InputError:  # without the constants, values are not finite
        return [], ()
    residual: list[Charge] = []
    affine: list[AffineCharge] = []
    known_keys = {_key(each) for each in known}
    for each in mixing:
        if _key(each) in known_keys:
            continue
        given_arguments = each, model, given, gradients, seed, tolerance
        if (shifted := affine_charge(*given_arguments)) is not None:
            affine.append(shifted)
        else:
            residual += residual_charges(*given_arguments)
    return residual, tuple(affine)


def traced(model: Model, point: Point) -> ClosedJaxpr:
    """Trace the program, with the parameters as its first arguments, and remove everything on which no output depends.

    Without this step, by-products such as running statistics would also have to be invariant.
    """
    with jax.enable_x64(True):
        program = jax.make_jaxpr(model.outputs)(*point)
        needed, _ = dce_jaxpr(program.jaxpr, True, instantiate=True)
        return ClosedJaxpr(needed, program.consts)


def _shape(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if isinstance(leaf, np.ndarray | jax.Array) else leaf


def _key(charge: Charge) -> tuple:
    """Return a key that identifies a symmetry."""
    return tuple(sorted((part.path, part.factor, part.labels.shape, part.labels.tobytes()) for part in charge.parts))


def _coarsest(program: ClosedJaxpr) -> float:
    """Return the machine epsilon of the narrowest floating-point type in a program."""
    found = [float(np.finfo(np.float64).eps)]

    def walk(jaxpr: Jaxpr) -> None:
        for equation in jaxpr.eqns:
            for each in equation.outvars:
                if jnp.issubdtype(dtype := getattr(each.aval, "dtype", np.dtype(bool)), jnp.floating):
                    found.append(float(jnp.finfo(dtype).eps))
            for body in bodies(equation):
                walk(body)

    walk(program.jaxpr)
    return max(found)
