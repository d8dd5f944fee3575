"""Annotations of individual numbers with bounds, shared by many functions and enforced by `checked`.

All numbers must be finite and must not be traced by JAX. This module is separate from `bounded`, so that functions
without JAX need not import JAX.
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
