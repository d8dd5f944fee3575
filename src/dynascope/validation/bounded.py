"""Annotations with bounds, as many functions have them; `checked` reads them.

Arrays are of any shape, and come as Python numbers or as arrays of floating-point numbers. All numbers are finite.
`FiniteNumber` and its like are for functions that compute in NumPy, which refuse what JAX traces; the arrays of
`FiniteNumbers` and its like come as arrays of NumPy of 64 bits.
"""

from typing import Annotated, TypeAlias

from annotated_types import Ge, Gt, Interval, IsFinite
from jax.typing import ArrayLike
from numpy.typing import ArrayLike as NumPyArrayLike

from dynascope.validation.annotations import Known

__all__ = [
    "FiniteArray",
    "FiniteFloat",
    "FiniteNumber",
    "FiniteNumbers",
    "Fraction",
    "NonNegativeArray",
    "NonNegativeFloat",
    "NonNegativeInt",
    "NonNegativeNumber",
    "NonNegativeNumbers",
    "OpenFraction",
    "PositiveArray",
    "PositiveFloat",
    "PositiveInt",
    "PositiveNumber",
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

FiniteNumber: TypeAlias = Annotated[IsFinite[float], Known]
PositiveNumber: TypeAlias = Annotated[float, Gt(0), Known]
NonNegativeNumber: TypeAlias = Annotated[float, Ge(0), Known]

FiniteNumbers: TypeAlias = IsFinite[NumPyArrayLike]
PositiveNumbers: TypeAlias = Annotated[NumPyArrayLike, Gt(0)]
NonNegativeNumbers: TypeAlias = Annotated[NumPyArrayLike, Ge(0)]
