"""Data, weights and times in other units give the same answer in other units, where a function states its units."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import pytest
from documented import Member, is_numeric, members, numbers

from dynascope import theory
from dynascope.theory.units import parsed_units

STATED = {
    name: member for name, member in members(theory).items() if any(getattr(member.function, "units", {}).values())
}
LARGEST = 500  # powers of two by which one argument is scaled, and others by less: 150 decades


def powers(unit: Any) -> list[dict[str, int]]:
    """The units of each number in an argument."""
    parts = unit.values() if isinstance(unit, Mapping) else unit if isinstance(unit, tuple) else None
    return [parsed_units(unit)] if parts is None else [each for part in parts for each in powers(part)]


def power_of(unit: Mapping[str, int], changes: dict[str, int]) -> int:
    return sum(changes.get(name, 0) * power for name, power in unit.items())


def scaled(value: Any, unit: Any, changes: dict[str, int]) -> Any:
    if value is None:
        return None
    if isinstance(unit, Mapping):
        parts = {name: scaled(getattr(value, name), part, changes) for name, part in unit.items()}
        return value._replace(**parts) if hasattr(value, "_replace") else dataclasses.replace(value, **parts)
    if isinstance(unit, tuple):
        parts = [scaled(each, part, changes) for each, part in zip(value, unit, strict=True)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    power = power_of(parsed_units(unit), changes)
    return jax.tree.map(lambda part: np.ldexp(part, power) if np.asarray(part).dtype.kind == "f" else part, value)


def floating(value: Any) -> Any:
    """An argument as arrays of NumPy."""
    return jax.tree.map(
        lambda part: np.asarray(part, float) if np.ndim(part) else float(part), value, is_leaf=is_numeric
    )


def given(member: Member) -> dict[str, Any]:
    """The arguments of the example that have units, with those that are one where they are left out."""
    known = member.arguments(member.calls[0])
    found = {name: known.get(name, 1.0) for name in vars(member.function)["units"]["arguments"]}
    return {name: floating(value) for name, value in found.items() if value is not None}


@pytest.mark.slow
@pytest.mark.parametrize("member", STATED.values(), ids=STATED)
@pytest.mark.parametrize("seed", range(3))
def test_other_units_give_the_same_answer_in_them(member, seed):
    stated, call, arguments = vars(member.function)["units"], member.calls[0], given(member)
    measured = [each for name in arguments for each in powers(stated["arguments"][name])]
    names = sorted({name for each in measured for name in each})
    drawn = np.random.default_rng(seed).uniform(-1, 1, len(names))
    changes = dict(zip(names, (10**6 * drawn).astype(int).tolist(), strict=True))
    largest = max(abs(power_of(each, changes)) for each in [*measured, *powers(stated["gives"])])
    changes = {name: round(LARGEST * change / largest) for name, change in changes.items()}
    found = member(
        call, **{name: scaled(value, stated["arguments"][name], changes) for name, value in arguments.items()}
    )
    found = scaled(found, stated["gives"], {name: -change for name, change in changes.items()})
    # Sums in another order, steps of a solver of 1e-10 at other places, and nothing where there should be nothing.
    for one, other in zip(numbers(found), numbers(member(call, **arguments)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)
