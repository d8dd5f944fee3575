"""Annotations with bounds, as many functions have them; `checked` reads them.

All numbers are finite. Single numbers must be known: JAX must not trace them. `FiniteArray` and its like are for
functions that compute in JAX: arrays of any shape, which come as Python numbers or as arrays of floating-point numbers.
`FiniteNumbers` and its like are for functions that compute in NumPy, and come as NumPy arrays of 64 bits.
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
