"""Affine maps of columns, to repeat a preprocessing step on other data or to undo it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.validation import checked, require, require_array, shown
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["AffineMap", "varying"]

_CONSTANT = 1e-12  # a column whose spread is below this fraction of its size is constant up to rounding


@dataclasses.dataclass(frozen=True, eq=False)
class AffineMap:
    """An affine map of rows, z = (x − shift) M.

    Attributes:
        shift: Array (d,), subtracted from each row.
        matrix: M, array (d, k), or (d,) if the map only scales each column.

    Example:
        >>> to_celsius = AffineMap(np.array([32.0]), np.array([5 / 9]))
        >>> to_celsius.apply([[212.0]]).item(), to_celsius.invert([[37.0]]).round(1).item()
        (100.0, 98.6)
    """

    shift: Float[np.ndarray, " d"]
    matrix: Float[np.ndarray, "d k"] | Float[np.ndarray, " d"]

    def __post_init__(self):
        shift = require_array("shift", self.shift, (None,))
        matrix = require_array("matrix", self.matrix, (len(shift),), (len(shift), None))
        for name, value in {"shift": shift, "matrix": matrix}.items():
            object.__setattr__(self, name, value)

    @classmethod
    @checked
    def identity(cls, dimension: PositiveInt) -> AffineMap:
        """The identity map."""
        return cls(np.zeros(dimension), np.ones(dimension))

    @classmethod
    def centring(cls, values: Float[np.ndarray, "n d"]) -> AffineMap:
        """The map that subtracts the mean of each column.

        Constant columns map to exactly zero, even in other data; otherwise, whitening would amplify the rounding errors
        of their means.
        """
        values = require_array("values", values, (None, None))
        return cls(values.mean(axis=0), np.where(varying(values), 1.0, 0.0))

    @classmethod
    def standardising(cls, values: Float[np.ndarray, "n d"]) -> AffineMap:
        """The map to columns with mean 0 and E[z²] = 1; constant columns become exactly zero, even in other data."""
        values = require_array("values", values, (None, None))
        kept = varying(values)
        # Dividing by the largest value prevents underflow and overflow of the squares.
        size = np.where(kept, np.abs(values).max(axis=0), 1.0)
        spread = size * np.where(kept, (values / size).std(axis=0), 1.0)
        return cls(values.mean(axis=0), np.where(kept, 1.0 / spread, 0.0))

    @property
    def input_dimension(self) -> int:
        """Number of columns d before the map."""
        return len(self.shift)

    @property
    def output_dimension(self) -> int:
        """Number of columns k after the map."""
        return self.matrix.shape[-1]

    @cached_property
    def inverse(self) -> Float[np.ndarray, "k d"] | Float[np.ndarray, " d"]:
        """M⁻¹, or the pseudoinverse if M is not invertible."""
        if self.matrix.ndim == 2:
            return np.linalg.pinv(self.matrix)
        return np.divide(1.0, self.matrix, out=np.zeros_like(self.matrix), where=self.matrix != 0)

    def apply(self, x: ArrayLike) -> Float[np.ndarray, "n k"]:
        """Compute (x − shift) M.

        Raises:
            InputError: If x is not a finite array of shape (n, d).
        """
        return _times(require_array("x", x, (None, self.input_dimension)) - self.shift, self.matrix)

    def invert(self, z: ArrayLike) -> Float[np.ndarray, "n d"]:
        """Compute z M⁻¹ + shift; in directions that M maps to zero, the result equals the shift.

        Raises:
            InputError: If z is not a finite array of shape (n, k).
        """
        return _times(require_array("z", z, (None, self.output_dimension)), self.inverse) + self.shift

    def weights(self, weights: ArrayLike) -> tuple[Float[np.ndarray, "d m"], Float[np.ndarray, " m"]]:
        """Express a linear map z ↦ z W in the original columns as x ↦ x W′ + b.

            W′ = M W,   b = −shift W′

        Args:
            weights: W, array (k, m).

        Returns:
            W′, array (d, m), and b, array (m,).

        Raises:
            InputError: If W is not a finite array of shape (k, m).

        Example:
            >>> weights, bias = AffineMap(np.array([32.0]), np.array([0.5])).weights([[3.0]])
            >>> weights.item(), bias.item()
            (1.5, -48.0)
        """
        given = require_array("weights", weights, (self.output_dimension, None))
        original = self.matrix @ given if self.matrix.ndim == 2 else self.matrix[:, None] * given
        return original, -self.shift @ original

    def then(self, following: AffineMap) -> AffineMap:
        """The composition of this map with a subsequent map."""
        return AffineMap(
            self.shift + _times(following.shift[None], self.inverse)[0], _product(self.matrix, following.matrix)
        )

    def only(self, columns: Sequence[int]) -> AffineMap:
        """The restriction to some of the columns, for a map that only scales columns."""
        require(
            self.matrix.ndim == 1,
            "the map mixes columns, so it cannot be restricted to some of them",
            argument="columns",
            value=list(columns),
            remedy="select columns of the data before or after applying the map",
        )
        there = range(len(self.shift))
        require(
            len(columns) > 0 and all(isinstance(each, int | np.integer) and each in there for each in columns),
            f"columns is {shown(list(columns))}",
            argument="columns",
            value=list(columns),
            remedy=f"give one or more column indices from 0 to {len(there) - 1}",
        )
        return AffineMap(self.shift[list(columns)], self.matrix[list(columns)])


def varying(values: Float[np.ndarray, "n d"]) -> np.ndarray:
    """Mask of the columns that are not constant up to rounding.

    Example:
        >>> varying(np.array([[0.1, 1.0], [0.1, 2.0]]))
        array([False,  True])
    """
    low, high = values.min(axis=0), values.max(axis=0)  # avoids temporary arrays of the size of the data
    return high - low > _CONSTANT * np.maximum(-low, high)


def _times(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return rows @ matrix if matrix.ndim == 2 else rows * matrix


def _product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    if first.ndim == 1 and second.ndim == 2:
        return first[:, None] * second
    return first @ second if second.ndim == 2 else first * second
