"""Matrix symmetries that constants in a function restrict or displace."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.charge import Charge, Part, charges
from dynascope.symmetry.unit_products import means_of_pairs
from dynascope.validation import require

__all__ = ["AffineCharge", "ResidualCharge"]


@dataclasses.dataclass(frozen=True, eq=False)
class ResidualCharge(Charge):
    """A matrix symmetry restricted to the matrices that leave constants unchanged.

    A constant that the function adds to values with this symmetry, such as a bias that is not learned, breaks the
    symmetry along the constant. On the orthogonal complement of the constants, with the orthonormal basis U of each
    block, the symmetry remains: the units are mixed by G = 1 + U (g − 1) Uᵀ with any invertible g. The charges are
    Uᵀ Q U, where Q is the matrix of charges without constants.

    Attributes:
        basis: U for each block, shape (blocks, block, mixed).

    Example:
        >>> from dynascope.symmetry import find_symmetries
        >>> params = {"in": np.eye(3, 2), "out": np.eye(2, 3)}
        >>> apply = lambda p, x: (x @ p["in"] + np.array([0.0, 0.7])) @ p["out"]
        >>> (charge,) = find_symmetries(apply, params, np.ones((4, 3))).symmetries
        >>> charge.size, abs(charge.basis).round(6).tolist()
        (1, [[[1.0], [0.0]]])
    """

    # A default is required after `block`; it stands for a symmetry without units.
    basis: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 1, 0)), repr=False)

    @property
    def mixed(self) -> int:
        """Number of coordinates of a block that mix with each other: the dimension of the complement."""
        return self.basis.shape[-1]

    @property
    def size(self) -> int:
        """Number of charges."""
        return len(self.basis) * self.mixed * (self.mixed + 1) // 2

    @property
    def group(self) -> str:
        """The symmetry group."""
        each = f" for each of {len(self.basis)}" if len(self.basis) > 1 else ""
        return f"GL({self.mixed}) in GL({self.block}){each}, orthogonal to constants"

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each charge: parameters, the first and last unit of its block, and two indices in the basis."""
        rows, columns = np.triu_indices(self.mixed)
        stem = f"{self.kind} {' '.join(self.paths)}"
        return tuple(
            f"{stem} [{start}–{start + self.block - 1}: {i}, {j}]"
            for start in range(0, self.units, self.block)
            for i, j in zip(rows, columns, strict=True)
        )

    def size_form(self, tree: Any) -> Any:
        """Compute only θᵀ|G|θ of each charge."""
        size: Any = sum(abs(part.factor) * product for part, product in self._products(tree, tree))
        return means_of_pairs(size.diagonal(axis1=1, axis2=2))

    def direction(self, theta: Any, weights: Any) -> Any:
        """Compute the velocity of the parameters along the symmetry; weights have shape (blocks, mixed, mixed)."""
        return super().direction(theta, self._in_block("weights", weights))

    def transformed(self, theta: Any, element: Any) -> Any:
        """Apply an element g of the symmetry group, shape (blocks, mixed, mixed), to the parameters."""
        change = self._in_block("element", np.asarray(element) - np.eye(self.mixed))
        return super().transformed(theta, np.eye(self.block) + change)

    def _in_block(self, argument: str, matrices: Any) -> Any:
        shape = len(self.basis), self.mixed, self.mixed
        require(
            np.shape(matrices) == shape,
            f"{argument} has shape {np.shape(matrices)}",
            argument=argument,
            value=np.shape(matrices),
            remedy=f"give an array of shape {shape}",
        )
        return self.basis @ matrices @ self.basis.transpose(0, 2, 1)

    def _products(self, theta: Any, gradient: Any) -> Iterator[tuple[Part, Any]]:
        for part, product in super()._products(theta, gradient):
            if self.kind == "matrix":
                product = self.basis.transpose(0, 2, 1) @ product @ self.basis
            yield part, product


@dataclasses.dataclass(frozen=True, eq=False)
class AffineCharge:
    """A symmetry that is linear after constants are added to parameters: θ → G(θ + c) − c.

    If a function adds a constant c to a learned bias b, the learned bias compensates for the constant under every
    change of basis, so the constant breaks no symmetry. The charge contains b + c in place of b. For the queries and
    keys of attention it is W_Q W_Qᵀ + (b + c)(b + c)ᵀ − W_K W_Kᵀ. Gradient flow without weight decay conserves the
    charge; weight decay of b does not act on b + c, so the laws of `training.charge_statistics` do not apply.

    Attributes:
        charge: The linear symmetry of θ + c.
        constants: c for each path of a parameter.

    Example:
        >>> from dynascope.symmetry import find_symmetries
        >>> params = {"bias": np.ones(2), "in": np.eye(3, 2), "out": np.eye(2, 3)}
        >>> apply = lambda p, x: (x @ p["in"] + p["bias"] + np.array([0.2, 0.7])) @ p["out"]
        >>> (affine,) = find_symmetries(apply, params, np.ones((4, 3))).affine
        >>> affine.charge.size, affine.constants["['bias']"].round(6).tolist()
        (3, [0.2, 0.7])
    """

    charge: Charge
    constants: Mapping[str, np.ndarray]

    __repr__ = short_repr

    def shifted(self, params: Any) -> Any:
        """Add the constants to the parameters, which gives the tree on which `charge` acts."""
        return self._moved(params, 1.0)

    def values(self, params: Any) -> Any:
        """Compute the charges of parameters, shape (charge,)."""
        return charges(self.shifted(params), [self.charge])

    def transformed(self, params: Any, element: Any) -> Any:
        """Apply an element of the symmetry group to the parameters, as `Charge.transformed`."""
        return self._moved(self.charge.transformed(self.shifted(params), element), -1.0)

    def _moved(self, params: Any, sign: float) -> Any:
        def each(path: Any, leaf: Any) -> Any:
            constant = self.constants.get(jax.tree_util.keystr(path))
            return leaf if constant is None else leaf + sign * constant

        return jax.tree_util.tree_map_with_path(each, params)
