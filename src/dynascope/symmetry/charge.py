"""A symmetry and what it conserves: sums of squares, or small Gram matrices, of slices of the parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation.frameworks import also_in_pytorch
from dynascope.symmetry.map_symmetries import in_turn
from dynascope.symmetry.parameters import arrays_by_path
from dynascope.symmetry.unit_products import (
    axes_of_labels,
    gram_matrices,
    means_of_pairs,
    pairs_of_matrices,
    unit_places,
    unit_rows,
    unit_sums,
)
from dynascope.validation import is_traced, require, require_finite_values, shown

__all__ = ["Charge", "Kind", "Part", "charges", "checked_charge"]

Kind = Literal["translation", "scale", "rescale", "matrix"]


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """What a symmetry does to one parameter.

    Attributes:
        path: Path of the parameter in the tree, as `jax.tree_util.keystr` writes it.
        labels: For each element the number of its unit, −1 for none; broadcasts to the shape of the parameter.
        factor: f, with which the elements of a unit are multiplied by exp(f t).
    """

    path: str
    labels: np.ndarray = dataclasses.field(repr=False)
    factor: float


@dataclasses.dataclass(frozen=True, eq=False)
class Charge:
    """A symmetry of a function of its parameters, and the charges that gradient flow of any loss of it conserves.

    - "scale", "rescale": unit u may be multiplied by exp(f t), one unit at a time. Q_u = Σ f ‖θ_u‖² over the parts: a
      norm before a normalisation, ‖out‖² − ‖in‖² of a homogeneous unit.
    - "matrix": the units of a block mix by any invertible matrix. Q_ab = Σ f ⟨θ_a, θ_b⟩ for a ≤ b of the same block,
      as AᵀA − WWᵀ of linear layers.
    - "translation": all elements of unit u may be shifted by one number. Q_u = Σ θ over the unit, which is linear.

    What is read last has f > 0. A sum of squares is θᵀGθ without ½.

    Attributes:
        kind: One of those above.
        parts: What it does to each parameter.
        units: Number of units.
        block: Units that mix with each other; one unless the kind is "matrix".
    """

    kind: Kind
    parts: tuple[Part, ...]
    units: int
    block: int = 1

    @property
    def size(self) -> int:
        """Number of charges."""
        return self.units * (self.block + 1) // 2

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters that take part, in the order in which they are read."""
        return tuple(dict.fromkeys(part.path for part in self.parts))

    @property
    def group(self) -> str:
        """The symmetry group."""
        if self.kind == "matrix":
            return f"GL({self.block})" + (f" for each of {self.units // self.block}" if self.units > self.block else "")
        each = f" for each of {self.units} units" if self.units > 1 else ""
        return ("translations" if self.kind == "translation" else "positive scales") + each

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each charge: its kind, its parameters, and its unit or its two units of a block."""
        stem = f"{self.kind} {' '.join(self.paths)}"
        if self.kind != "matrix":
            return tuple(f"{stem} [{unit}]" for unit in range(self.units))
        rows, columns = np.triu_indices(self.block)
        starts = range(0, self.units, self.block)
        return tuple(f"{stem} [{s + i}, {s + j}]" for s in starts for i, j in zip(rows, columns, strict=True))

    def form(self, left: Any, right: Any) -> Any:
        """θᵀGv for each charge, symmetric in both; ⟨θ, 1⟩ over each unit where the charge is linear.

        Cost: two operations for each element, by norms and Gram matrices of the arrays as they are, without copies.

        Args:
            left: θ, a tree with arrays at the paths, of NumPy or JAX; inside of a compiled function too.
            right: v, another such tree.

        Returns:
            Values (charge,), of NumPy in 64 bits for arrays of NumPy alone.

        Raises:
            InputError: A parameter is missing, or has another shape.

        Example:
            >>> import numpy as np
            >>> part = Part("['w']", np.array([[0], [1]]), 1.0)
            >>> theta = {"w": np.array([[1.0, 2.0], [0.0, 3.0]])}
            >>> Charge("scale", (part,), 2).form(theta, theta).tolist()
            [5.0, 9.0]
        """
        if self.kind != "matrix":
            return self.identity(right, left)
        return pairs_of_matrices(self.identity(left, right, transposed=False))

    def form_and_size(self, tree: Any) -> tuple[Any, Any]:
        """θᵀGθ and θᵀ|G|θ of each charge, from the same norms and Gram matrices of the parameters.

        Of two units of a matrix the size is the mean of theirs; of sums of elements it is Σ|θ|.

        Args:
            tree: θ, as for `form`.

        Returns:
            Two arrays (charge,).

        Raises:
            InputError: A parameter is missing, or has another shape.

        Example:
            >>> import numpy as np
            >>> hidden = Part("[0]", np.array([[0, 1]]), -1.0), Part("[1]", np.array([[0], [1]]), 1.0)
            >>> theta = [np.array([[1.0, 2.0]]), np.array([[3.0], [1.0]])]
            >>> [each.tolist() for each in Charge("rescale", hidden, 2).form_and_size(theta)]
            [[8.0, -3.0], [10.0, 5.0]]
        """
        if self.kind == "translation":
            return self.form(tree, tree), self.size_form(tree)
        products = list(self._products(tree, tree))
        form: Any = sum(part.factor * product for part, product in products)
        size: Any = sum(abs(part.factor) * product for part, product in products)
        if self.kind != "matrix":
            return form, size
        return pairs_of_matrices(form), means_of_pairs(size.diagonal(axis1=1, axis2=2))

    def size_form(self, tree: Any) -> Any:
        """θᵀ|G|θ alone, or Σ|θ|, of a tree as for `form`: values (charge,), by norms of the units; raises as that."""
        if self.kind == "translation":
            tree = jax.tree.map(abs, tree)
        parts = tuple(dataclasses.replace(part, factor=abs(part.factor)) for part in self.parts)
        kind = "scale" if self.kind == "matrix" else self.kind
        found = dataclasses.replace(self, kind=kind, parts=parts, block=1).form(tree, tree)
        return means_of_pairs(found.reshape(-1, self.block)) if self.kind == "matrix" else found

    def identity(self, theta: Any, gradient: Any, *, transposed: bool = True) -> Any:
        """The derivative of the loss along the symmetry, ⟨g, ξ(θ)⟩, which is zero: Σ f ⟨g, θ⟩ or ⟨g, 1⟩ of each unit.

        Of matrices (block, a, b), Σ ⟨g_a, θ_b⟩ over what has f > 0 less ⟨θ_a, g_b⟩ over what has f < 0: its symmetric
        part says that the charge is conserved, its antisymmetric part is the constraint of rotations.

        Args:
            theta: The parameters θ.
            gradient: The gradient g, a tree with arrays at the same paths.
            transposed: Whether what has f < 0 is acted on by the transposed inverse, as the symmetry does; if not, this
                is the Gram matrix Σ f ⟨θ_a, g_b⟩.

        Raises:
            InputError: A parameter is missing, or has another shape.
        """
        total: Any = 0.0
        for part, product in self._products(theta, gradient):
            # Rows are those of the gradient where f > 0.
            flip = self.kind == "matrix" and transposed and part.factor > 0
            total = total + part.factor * (product.transpose(0, 2, 1) if flip else product)
        return total

    def _products(self, theta: Any, gradient: Any) -> Iterator[tuple[Part, Any]]:
        """For each part ⟨θ, g⟩ of each unit, the Gram matrices ⟨θ_a, g_b⟩ of each block, or the sums of g."""
        ones, others = arrays_by_path(theta), arrays_by_path(gradient)
        for part in self.parts:
            one, other = _found(ones, part), _found(others, part)
            xp = np if isinstance(one, np.ndarray) and isinstance(other, np.ndarray) else jnp
            if xp is np:
                one, other = one.astype(np.float64, copy=False), other.astype(np.float64, copy=False)
            if self.kind == "matrix":
                yield part, gram_matrices(part.labels, one, other, self.units, self.block, xp)
            else:
                product = other if self.kind == "translation" else one * other
                yield part, unit_sums(part.labels, product, self.units, xp)

    def direction(self, theta: Any, weights: Any) -> Any:
        """ξ = Σ weight · G θ, or Σ weight · 1: the tree of the parameters' velocities along the symmetry.

        Args:
            theta: The parameters θ.
            weights: One number a unit (units,); of a matrix (blocks, block, block), of any symmetry.

        Returns:
            A tree as θ, with zeros where nothing moves.

        Raises:
            InputError: Weights of another shape, or θ without a parameter.
        """

        def velocity(parts: list[Part], leaf: Any, xp: Any) -> Any:
            total = xp.zeros_like(leaf)
            for part in parts:
                if self.kind == "matrix":
                    turned = weights if part.factor > 0 else -np.swapaxes(weights, 1, 2)
                    total = total + self._mixed(part, leaf, turned, xp) * abs(part.factor)
                else:
                    move = self._spread(part, weights, 0.0, xp) * part.factor
                    total = total + (move if self.kind == "translation" else move * leaf)
            return total

        return self._mapped(velocity, theta, weights, still=False)

    def transformed(self, theta: Any, element: Any) -> Any:
        """The parameters at another point of their orbit, where every loss of the function is the same.

        Args:
            theta: The parameters θ.
            element: Of translations what is added to each unit, of scales the positive number c whose power c^f each is
                multiplied by (units,); of matrices G (blocks, block, block), by which rows with f > 0 are multiplied,
                and others by its transposed inverse.

        Returns:
            A tree as θ.

        Raises:
            InputError: An element of another shape, or θ without a parameter.
        """

        def moved(parts: list[Part], leaf: Any, xp: Any) -> Any:
            for part in parts:
                if self.kind == "matrix":
                    turned = element if part.factor > 0 else np.swapaxes(np.linalg.inv(element), 1, 2)
                    leaf = leaf + self._mixed(part, leaf, turned - np.eye(self.block), xp)
                elif self.kind == "translation":
                    leaf = leaf + self._spread(part, element, 0.0, xp) * part.factor
                else:
                    leaf = leaf * self._spread(part, xp.asarray(element) ** part.factor, 1.0, xp)
            return leaf

        return self._mapped(moved, theta, element, still=True)

    def _mapped(self, move: Any, theta: Any, weights: Any, *, still: bool) -> Any:
        """The tree with what is done to each parameter of the symmetry; others stay or are zero."""
        shape = (self.units // self.block, self.block, self.block) if self.kind == "matrix" else (self.units,)
        require(
            np.shape(weights) == shape,
            f"the weights of units have shape {np.shape(weights)}",
            argument="weights",
            value=np.shape(weights),
            remedy=f"give numbers of shape {shape}",
        )
        arrays = arrays_by_path(theta)
        for part in self.parts:
            _found(arrays, part)

        def each(path: Any, leaf: Any) -> Any:
            if not isinstance(leaf, np.ndarray | jax.Array):
                return leaf
            xp = np if isinstance(leaf, np.ndarray) else jnp
            parts = [part for part in self.parts if part.path == jax.tree_util.keystr(path)]
            return xp.asarray(move(parts, leaf, xp)) if parts else (leaf if still else xp.zeros_like(leaf))

        return jax.tree_util.tree_map_with_path(each, theta)

    def _spread(self, part: Part, values: Any, elsewhere: float, xp: Any) -> Any:
        """The values of the units at their elements."""
        return xp.where(part.labels >= 0, xp.asarray(values)[np.maximum(part.labels, 0)], elsewhere)

    def _mixed(self, part: Part, leaf: Any, matrices: Any, xp: Any) -> Any:
        """The matrices times the rows of a parameter, and zero elsewhere."""
        outer, inner = axes_of_labels(part.labels, leaf.shape)
        order = unit_places(part.labels, self.units)
        rows = xp.einsum("bij,bjr->bir", xp.asarray(matrices), unit_rows(part.labels, leaf, self.units, self.block, xp))
        rows = rows.reshape(order.size, -1)
        # Where each row is among those that move; behind them stands one of zeros.
        place = np.full(part.labels.size, order.size)
        place[order.ravel()] = np.arange(order.size)
        rows = xp.concatenate([rows, xp.zeros_like(rows[:1])])[place]
        return xp.moveaxis(rows.reshape([leaf.shape[axis] for axis in (*outer, *inner)]), range(len(outer)), outer)


@also_in_pytorch("dynascope.torch.symmetry.charges")
def charges(params: Any, symmetries: Sequence[Charge]) -> Any:
    """The conserved charges θᵀGθ, and ⟨θ, 1⟩ of translations, of all symmetries one after the other.

    Args:
        params: The tree of the parameters θ, of NumPy or JAX; or a `torch.nn.Module`, or a tree of tensors of PyTorch.
        symmetries: Those of `find_symmetries` or of your own.

    Returns:
        Values (charge,); of PyTorch as an array of NumPy, without gradients.

    Raises:
        InputError: Something else than symmetries, parameters that these do not fit, or values that are not finite.

    References:
        Neural Mechanics, arXiv:2012.04728; Abide by the Law and Follow the Flow, arXiv:2307.00144.

    Example:
        >>> import numpy as np
        >>> hidden = Part("[0]", np.array([[0, 1]]), -1.0), Part("[1]", np.array([[0], [1]]), 1.0)
        >>> charges([np.array([[1.0, 2.0]]), np.array([[3.0], [1.0]])], [Charge("rescale", hidden, 2)]).tolist()
        [8.0, -3.0]
    """
    values = in_turn(symmetries, lambda each, theta: checked_charge(each).form(theta, theta), params) or [np.zeros(0)]
    found = (np if all(isinstance(each, np.ndarray) for each in values) else jnp).concatenate(values)
    if not is_traced(found):
        require_finite_values("params", found)
    return found


def checked_charge(value: Any) -> Charge:
    """Return the value after checking that it is the charge of a symmetry."""
    require(
        isinstance(value, Charge),
        f"symmetries holds {shown(value)}",
        argument="symmetries",
        value=type(value).__name__,
        remedy="give those that structure finds",
    )
    return value


def _found(arrays: dict[str, Any], part: Part) -> Any:
    array = arrays.get(part.path)
    shape = None if array is None else tuple(array.shape)
    fits = shape is not None and len(shape) == part.labels.ndim
    fits = fits and all(n in (1, length) for n, length in zip(part.labels.shape, shape or (), strict=True))
    require(
        fits,
        f"the parameter {part.path} has shape {shape}" if shape is not None else f"there is no parameter {part.path}",
        argument="params",
        value=shape,
        remedy="give the tree of parameters in which the symmetry was found",
    )
    return array
