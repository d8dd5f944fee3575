"""Annotations with bounds, as many functions have them; `checked` reads them.

Arrays are of any shape, and come as Python numbers or as arrays of floating-point numbers. All numbers are finite.
"""

from typing import Annotated, TypeAlias

from annotated_types import Ge, Gt, Interval, IsFinite
from jax.typing import ArrayLike

__all__ = [
    "FiniteArray",
    "FiniteFloat",
    "Fraction",
    "NonNegativeArray",
    "NonNegativeFloat",
    "NonNegativeInt",
    "PositiveArray",
    "PositiveFloat",
    "PositiveInt",
    "Seed",
]

FiniteFloat: TypeAlias = IsFinite[float]
PositiveFloat: TypeAlias = Annotated[float, Gt(0)]
NonNegativeFloat: TypeAlias = Annotated[float, Ge(0)]
Fraction: TypeAlias = Annotated[float, Interval(ge=0, le=1)]

PositiveInt: TypeAlias = Annotated[int, Ge(1)]
NonNegativeInt: TypeAlias = Annotated[int, Ge(0)]
Seed: TypeAlias = Annotated[int, Ge(0)]

FiniteArray: TypeAlias = IsFinite[ArrayLike]
PositiveArray: TypeAlias = Annotated[ArrayLike, Gt(0)]
NonNegativeArray: TypeAlias = Annotated[ArrayLike, Ge(0)]
