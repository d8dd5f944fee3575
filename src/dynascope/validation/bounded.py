"""Annotations with bounds, as many functions have them; `checked` reads them.

All numbers are finite. Single numbers must be known: JAX must not trace them. `FiniteArray` and its like are for
functions that compute in JAX: arrays of any shape, which come as Python numbers or as arrays of floating-point numbers.
`FiniteNumbers` and its like are for functions that compute in NumPy, and come as NumPy arrays of 64 bits.
"""

from typing import Annotated, TypeAlias

from annotated_types import Ge, Gt, Interval, IsFinite
from jax.typing import ArrayLike
from numpy.typing import ArrayLike as NumPyArrayLike

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

FiniteFloat: TypeAlias = IsFinite[float]
PositiveFloat: TypeAlias = Annotated[float, Gt(0)]
NonNegativeFloat: TypeAlias = Annotated[float, Ge(0)]
Fraction: TypeAlias = Annotated[float, Interval(ge=0, le=1)]
OpenFraction: TypeAlias = Annotated[float, Interval(gt=0, lt=1)]

PositiveInt: TypeAlias = Annotated[int, Ge(1)]
NonNegativeInt: TypeAlias = Annotated[int, Ge(0)]
Seed: TypeAlias = Annotated[int, Ge(0)]

FiniteArray: TypeAlias = IsFinite[ArrayLike]
PositiveArray: TypeAlias = Annotated[ArrayLike, Gt(0)]
NonNegativeArray: TypeAlias = Annotated[ArrayLike, Ge(0)]

FiniteNumbers: TypeAlias = IsFinite[NumPyArrayLike]
PositiveNumbers: TypeAlias = Annotated[NumPyArrayLike, Gt(0)]
NonNegativeNumbers: TypeAlias = Annotated[NumPyArrayLike, Ge(0)]
