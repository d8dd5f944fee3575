"""Annotations of arrays with bounds, shared by many functions and enforced by `checked`.

All numbers must be finite. Individual numbers must not be traced by JAX. `FiniteArray` and similar annotations are for
functions that compute in JAX: they allow any shape, and the function receives a Python number or a floating-point
array. `FiniteNumbers` and similar annotations are for functions that compute in NumPy and receive float64 NumPy arrays.
"""

from typing import Annotated, TypeAlias

from annotated_types import Ge, Gt, IsFinite
from jax.typing import ArrayLike
from numpy.typing import ArrayLike as NumPyArrayLike

from dynascope.validation.bounded_scalars import (
    FiniteFloat,
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    OpenFraction,
    PositiveFloat,
    PositiveInt,
    Seed,
)

__all__ = [
    "FiniteArray",
    "FiniteFloat",
    "FiniteNumbers",
    "Fraction",
    "NonNegativeArray",
    "NonNegativeFloat",
    "NonNegativeInt",
    "NonNegativeNumbers",
    "OpenFraction",
    "PositiveArray",
    "PositiveFloat",
    "PositiveInt",
    "PositiveNumbers",
    "Seed",
]

FiniteArray: TypeAlias = IsFinite[ArrayLike]
PositiveArray: TypeAlias = Annotated[ArrayLike, Gt(0)]
NonNegativeArray: TypeAlias = Annotated[ArrayLike, Ge(0)]

FiniteNumbers: TypeAlias = IsFinite[NumPyArrayLike]
PositiveNumbers: TypeAlias = Annotated[NumPyArrayLike, Gt(0)]
NonNegativeNumbers: TypeAlias = Annotated[NumPyArrayLike, Ge(0)]
