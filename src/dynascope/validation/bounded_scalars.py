"""Annotations of single numbers with bounds, as many functions have them; `checked` reads them.

All are finite and must be known: JAX must not trace them. They stand here, apart from those of arrays in `bounded`, so
that functions that need no JAX do not load it.
"""

from typing import Annotated, TypeAlias

from annotated_types import Ge, Gt, Interval, IsFinite

__all__ = [
    "FiniteFloat",
    "Fraction",
    "NonNegativeFloat",
    "NonNegativeInt",
    "OpenFraction",
    "PositiveFloat",
    "PositiveInt",
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
