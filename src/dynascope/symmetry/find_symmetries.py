"""Symmetries of a function of parameters found in its program, and held against its gradients."""

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
from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.charge import Charge
from dynascope.symmetry.families import families
from dynascope.symmetry.independence import independent_charges
from dynascope.symmetry.mixing import mixing_units
from dynascope.symmetry.parameters import Model, Point, points, projected_gradients, read
from dynascope.symmetry.program_loops import bodies
from dynascope.symmetry.scaling import exact_and_relaxed
from dynascope.symmetry.symmetry_defects import defects, holds_far
from dynascope.symmetry.translations import is_used, translations
from dynascope.validation.bounded_scalars import Seed

__all__ = ["BrokenSymmetry", "SymmetryStructure", "find_symmetries"]

_POINTS = 3  # at which gradients are looked at; a unit of ReLU that is dead at all of them is told to be
_EXACT = 1e-9  # rounding of a derivative along a symmetry, relative to the norms of what is summed


@dataclasses.dataclass(frozen=True, eq=False)
class BrokenSymmetry:
    """What would be a symmetry, and by how much it is none.

    Attributes:
        charge: The symmetry and its charges.
        defect: For each unit the largest |⟨g, ξ⟩| / (‖g‖ ‖ξ‖) that was seen, of the gradient g of random combinations
            of the outputs along the symmetry ξ: at the given point for the ε of a norm, at random ones otherwise.
        reason: What breaks it.

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
        symmetries: Those that hold, in the order in which the program reads their parameters.
        broken: Those that the ε of a norm breaks, and those that the program has and its gradients do not.
        rounding: The largest |⟨g, ξ⟩| / (‖g‖ ‖ξ‖) of any symmetry that holds, at random points.
        unused: Paths of parameters that no output depends on; all their elements are conserved.
        shapes: The tree of the parameters' shapes.
    """

    symmetries: tuple[Charge, ...]
    broken: tuple[BrokenSymmetry, ...]
    rounding: float
    unused: tuple[str, ...]
    shapes: Any = dataclasses.field(repr=False)

    __repr__ = short_repr

    @functools.cached_property
    def size(self) -> int:
        """Number of independent charges of all symmetries: the rank of their Jacobian at random weights.

        It is at most the number of `names`. Above 1000 charges of symmetries that share parameters it is an upper
        bound, as dependences between symmetries are not looked for.
        """
        return independent_charges(self.symmetries, self.shapes)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each charge, along the dimension `charge`; a number tells apart those of the same parameters."""
        met: Counter[str] = Counter()
        found = []
        for each in self.symmetries:
            for name in each.names:
                met[name] += 1
                found.append(name if met[name] == 1 else f"{name} ({met[name]})")
        return tuple(found)

    @property
    def table(self) -> str:
        """The symmetries, one a line: kind, group, independent charges and parameters; what breaks others."""
        counts = [independent_charges([each], self.shapes) for each in self.symmetries]
        rows = [
            (each.kind, each.group, str(count), " ".join(each.paths))
            for each, count in zip(self.symmetries, counts, strict=True)
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
    """The symmetries of a function and the charges that they conserve, read off its program.

    The program that JAX traces is read, whatever modules it was written with. A value that is multiplied by exp(t d)
    when parameters are multiplied by exp(t a) has exponents d that are linear in a: sums tie them, products add them,
    and what is not homogeneous needs them to be zero, as outputs do. What stays free are all rescalings of
    elements, and so layers, convolutions with groups and strides, norms, homogeneous activations however they are
    written, gates, attention with grouped queries and rotary positions, residual streams, tied weights, embeddings,
    and loops over stacked layers need no words of their own. Shifts are followed likewise. Units that one gradient
    shows to mix linearly are gathered into matrices.
    Every symmetry is then held against gradients at random points, and none is returned that does not hold to rounding.

    Not found: linear symmetries in another basis than that of units, such as behind a fixed matrix or a sort; shifts
    that a sum of one parameter's elements does not see, or of weights that read values which sum to zero, as those of a
    norm without a gain; shifts through a variance that is written as a difference of means; shifts compensated in more
    than one other parameter; shifts that a scale compensates, as b → b + s and c → c exp(−s) of c exp(a·x + b), which
    conserve b − c²/2 of each unit. `discover` shows them on a small network of the kind.
    Permutations and signs of units carry no charge.

    Of PyTorch the program is that of `torch.program`. A module is read in the mode in which it stands: in training mode
    batch norm has the statistics of the example batch; in evaluation those that it has recorded, which are constants,
    as are all buffers and parameters that do not require a gradient. A tied weight is one parameter. Paths are those of
    {name: array} with the names of `named_parameters`.

    Args:
        apply: (params, inputs) → outputs, which the loss is computed from; log-probabilities if it is a cross-entropy.
            Or a `torch.nn.Module` with such outputs.
        params: A tree; its arrays or tensors of floating-point numbers are the parameters. None for the parameters of
            a `torch.nn.Module` that is `apply`; the module for a function that calls it.
        example_inputs: Inputs as `apply` takes them. Batch statistics are those of such a batch. For a
            `torch.nn.Module` a tensor, a tuple of its arguments, or a dictionary of arguments by keyword.
        seed: Seed of the random points.

    Raises:
        InputError: `apply` cannot be called, or has no real outputs; parameters or inputs that are not finite. In
            PyTorch also what `torch.program` cannot read.

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
        far = holds_far(each, model, given[0], seed, 1e1 * tolerance)
        if far and defect.max(initial=0.0) <= tolerance:
            symmetries.append(each)
            rounding = max(rounding, float(defect.max(initial=0.0)))
        else:
            broken.append(BrokenSymmetry(each, defect, "gradients or values differ from what the program says"))
    known = {_key(each) for each in exact}
    here = list(projected_gradients(model, [point], seed))
    for each in families(relaxed, model.paths):
        if _key(each) not in known and each.kind == "scale":
            broken.append(BrokenSymmetry(each, defects(each, model, [point], here), "ε of a norm"))
    unused = tuple(path for number, path in enumerate(model.paths) if not is_used(program, number))
    return SymmetryStructure(tuple(symmetries), tuple(broken), rounding, unused, jax.tree.map(_shape, params))


def traced(model: Model, point: Point) -> ClosedJaxpr:
    """The program, whose first arguments are the parameters, with nothing that outputs do not need.

    What is computed on the way, as running statistics are, would have to keep its value else.
    """
    with jax.enable_x64(True):
        program = jax.make_jaxpr(model.outputs)(*point)
        needed, _ = dce_jaxpr(program.jaxpr, True, instantiate=True)
        return ClosedJaxpr(needed, program.consts)


def _shape(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if isinstance(leaf, np.ndarray | jax.Array) else leaf


def _key(charge: Charge) -> tuple:
    """What tells a symmetry from others."""
    return tuple(sorted((part.path, part.factor, part.labels.shape, part.labels.tobytes()) for part in charge.parts))


def _coarsest(program: ClosedJaxpr) -> float:
    """The rounding of the narrowest floating-point numbers that a program computes with."""
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
