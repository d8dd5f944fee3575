"""Symmetries and the charges they conserve: sums, sums of squares, or Gram matrices of slices of the parameters."""

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
    """The action of a symmetry on one parameter.

    Attributes:
        path: Path of the parameter in the tree, in the notation of `jax.tree_util.keystr`.
        labels: For each element, the index of the unit to which it belongs, −1 for none; must broadcast to the shape of
            the parameter.
        factor: f; the symmetry multiplies the elements of a unit by exp(f t).
    """

    path: str
    labels: np.ndarray = dataclasses.field(repr=False)
    factor: float


@dataclasses.dataclass(frozen=True, eq=False)
class Charge:
    """A symmetry of a function of parameters, with the charges that it conserves under gradient flow of any loss.

    - "scale", "rescale": each unit u can be multiplied by exp(f t) independently. The charge is Q_u = Σ f ‖θ_u‖² over
      the parts, e.g. the squared norm of weights before a normalisation layer, or ‖out‖² − ‖in‖² of a homogeneous unit.
    - "matrix": the units of a block can be mixed by any invertible matrix. The charges are Q_ab = Σ f ⟨θ_a, θ_b⟩ for
      a ≤ b in the same block, e.g. AᵀA − WWᵀ of linear layers.
    - "translation": one number can be added to all elements of unit u. The charge Q_u = Σ θ over the unit is linear.

    The parameter that the program reads last has f > 0. Charges that are sums of squares are θᵀGθ, without the factor
    ½.

    Attributes:
        kind: "scale", "rescale", "matrix" or "translation".
        parts: The action on each parameter.
        units: Number of units.
        block: Number of units that mix with each other; 1 unless the kind is "matrix".
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
    def mixed(self) -> int:
        """Number of coordinates of a block that mix with each other."""
        return self.block

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters on which the symmetry acts, in the order in which the program reads them."""
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
        """The name of each charge: kind, parameters, and the index of its unit, or of its two units in a block."""
        stem = f"{self.kind} {' '.join(self.paths)}"
        if self.kind != "matrix":
            return tuple(f"{stem} [{unit}]" for unit in range(self.units))
        rows, columns = np.triu_indices(self.block)
        starts = range(0, self.units, self.block)
        return tuple(f"{stem} [{s + i}, {s + j}]" for s in starts for i, j in zip(rows, columns, strict=True))

    def form(self, left: Any, right: Any) -> Any:
        """Compute θᵀGv for each charge, symmetric in θ and v, or the sum of v over each unit if the charge is linear.

        The cost is two operations per element. Norms and Gram matrices are computed without copies of the arrays.

        Args:
            left: θ, a tree of NumPy or JAX arrays at the paths of the symmetry; tracers are allowed.
            right: v, a tree of the same structure.

        Returns:
            The values, shape (charge,); in 64-bit NumPy if all arrays are NumPy arrays.

        Raises:
            InputError: If a parameter is missing or has a shape that does not match.

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
        """Compute θᵀGθ and θᵀ|G|θ for each charge from the same norms and Gram matrices.

        For the charge of two different units, the result for |G| is the mean over both units. For a linear charge, the
        result for |G| is Σ|θ|.

        Args:
            tree: θ, as in `form`.

        Returns:
            Two arrays of shape (charge,).

        Raises:
            InputError: If a parameter is missing or has a shape that does not match.

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
        """Compute only θᵀ|G|θ (or Σ|θ|) of each charge from the norms of the units, for a tree as in `form`."""
        if self.kind == "translation":
            tree = jax.tree.map(abs, tree)
        parts = tuple(dataclasses.replace(part, factor=abs(part.factor)) for part in self.parts)
        kind = "scale" if self.kind == "matrix" else self.kind
        found = dataclasses.replace(self, kind=kind, parts=parts, block=1).form(tree, tree)
        return means_of_pairs(found.reshape(-1, self.block)) if self.kind == "matrix" else found

    def identity(self, theta: Any, gradient: Any, *, transposed: bool = True) -> Any:
        """Compute the derivative of the loss along the symmetry, ⟨g, ξ(θ)⟩, for each unit.

        The derivative is Σ f ⟨g, θ⟩, or the sum of g for translations; both are zero if the loss has the symmetry. For
        matrices, the derivative has shape (blocks, a, b) and is the sum of ⟨g_a, θ_b⟩ over parts with f > 0 minus the
        sum of ⟨θ_a, g_b⟩ over parts with f < 0. The symmetric part vanishes because the charge is conserved; the
        antisymmetric part vanishes because rotations of the units are symmetries.

        Args:
            theta: The parameters θ.
            gradient: The gradient g, a tree with arrays at the same paths.
            transposed: Whether the transposed inverse acts on parts with f < 0, as in the symmetry. If False, the
                result is the Gram matrix Σ f ⟨θ_a, g_b⟩.

        Raises:
            InputError: If a parameter is missing or has a shape that does not match.
        """
        total: Any = 0.0
        for part, product in self._products(theta, gradient):
            # If f > 0, rows correspond to units of the gradient.
            flip = self.kind == "matrix" and transposed and part.factor > 0
            total = total + part.factor * (product.transpose(0, 2, 1) if flip else product)
        return total

    def _products(self, theta: Any, gradient: Any) -> Iterator[tuple[Part, Any]]:
        """Yield, for each part, ⟨θ, g⟩ of each unit, the Gram matrices ⟨θ_a, g_b⟩ of each block, or the sums of g."""
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
        """Compute the velocity of the parameters along the symmetry.

        The velocity is ξ = Σ weight · Gθ, or Σ weight · 1 for translations.

        Args:
            theta: The parameters θ.
            weights: One number per unit, shape (units,); for a matrix symmetry, matrices of shape (blocks, block,
                block), not necessarily symmetric.

        Returns:
            A tree with the structure of θ; elements on which the symmetry does not act are zero.

        Raises:
            InputError: If the weights have another shape, or θ lacks a parameter.
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

        return self._mapped(velocity, theta, weights, "weights", still=False)

    def transformed(self, theta: Any, element: Any) -> Any:
        """Apply an element of the symmetry group to the parameters.

        The transformation does not change the function, and therefore no loss of its outputs.

        Args:
            theta: The parameters θ.
            element: For translations, the number added to each unit, shape (units,). For scales, the positive number c
                of each unit, shape (units,); the elements of the unit are multiplied by c^f. For matrices, G of shape
                (blocks, block, block); G multiplies the rows of parts with f > 0, and its transposed inverse multiplies
                the rows of the other parts.

        Returns:
            A tree with the structure of θ.

        Raises:
            InputError: If the element has another shape, or θ lacks a parameter.
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

        return self._mapped(moved, theta, element, "element", still=True)

    def _mapped(self, move: Any, theta: Any, weights: Any, argument: str, *, still: bool) -> Any:
        """Apply `move` to each parameter of the symmetry; keep the others if `still`, otherwise set them to zero."""
        shape = (self.units // self.block, self.block, self.block) if self.kind == "matrix" else (self.units,)
        require(
            np.shape(weights) == shape,
            f"{argument} has shape {np.shape(weights)}",
            argument=argument,
            value=np.shape(weights),
            remedy=f"give an array of shape {shape}",
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
        """Broadcast the values of the units to the elements of the units."""
        return xp.where(part.labels >= 0, xp.asarray(values)[np.maximum(part.labels, 0)], elsewhere)

    def _mixed(self, part: Part, leaf: Any, matrices: Any, xp: Any) -> Any:
        """Multiply the rows of a parameter by the matrices; the result is zero for elements outside the units."""
        outer, inner = axes_of_labels(part.labels, leaf.shape)
        order = unit_places(part.labels, self.units)
        rows = xp.einsum("bij,bjr->bir", xp.asarray(matrices), unit_rows(part.labels, leaf, self.units, self.block, xp))
        rows = rows.reshape(order.size, -1)
        # The index of each element's row among the mixed rows; elements outside the units read an added row of zeros.
        place = np.full(part.labels.size, order.size)
        place[order.ravel()] = np.arange(order.size)
        rows = xp.concatenate([rows, xp.zeros_like(rows[:1])])[place]
        return xp.moveaxis(rows.reshape([leaf.shape[axis] for axis in (*outer, *inner)]), range(len(outer)), outer)


@also_in_pytorch("dynascope.torch.symmetry.charges")
def charges(params: Any, symmetries: Sequence[Charge]) -> Any:
    """Compute the conserved charges of all symmetries, in order: θᵀGθ, or Σ θ for translations.

    Args:
        params: The tree of parameters θ, as NumPy or JAX arrays; or a `torch.nn.Module`, or a tree of PyTorch tensors.
        symmetries: The symmetries that `find_symmetries` found, or `Charge` objects that you construct.

    Returns:
        The values, shape (charge,); for PyTorch, a NumPy array without gradients.

    Raises:
        InputError: If `symmetries` contains anything other than symmetries, if the parameters do not match them, or if
            they are not finite.

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
    """Return the value if it is a `Charge`; otherwise raise `InputError`."""
    require(
        isinstance(value, Charge),
        f"symmetries contains {shown(value)}",
        argument="symmetries",
        value=type(value).__name__,
        remedy="give the symmetries that find_symmetries found",
    )
    return value


def _found(arrays: dict[str, Any], part: Part) -> Any:
    array = arrays.get(part.path)
    shape = None if array is None else tuple(array.shape)
    fits = shape is not None and len(shape) == part.labels.ndim
    fits = fits and all(n in (1, length) for n, length in zip(part.labels.shape, shape or (), strict=True))
    there = ", ".join(sorted(arrays))
    require(
        fits,
        f"there is no parameter {part.path}, only {there}" if shape is None else f"{part.path} has shape {shape}",
        argument="params",
        value=shape,
        remedy="give the parameter tree in which the symmetry was found",
    )
    return array
