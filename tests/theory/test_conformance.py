"""What every public theory function must be; a function that a face re-exports takes part without further words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from documented import (
    Call,
    Member,
    is_floating,
    is_numeric,
    is_row,
    numbers,
    programs_so_far,
    spoiled,
)

from dynascope.errors import InputError

# What it refuses.

RAGGED = [[1.0], [1.0, 2.0]]


def bad_inputs(member: Member, name: str, value: Any) -> dict[str, Any]:
    said = member.explained.get(name, "")
    bad = {"NaN": spoiled(value, float("nan")), "text": spoiled(value, "frob"), "ragged": RAGGED}
    if "∞" not in said.split(";")[-1]:
        bad["∞"] = spoiled(value, float("inf"))
    bad["−∞"] = spoiled(value, float("-inf"))
    if re.match(r"[^.;,]*? [>≥] 0\b", said):
        bad["negative"] = spoiled(value, -1.0)
    if re.match(r"[^.;,]*? > 0\b", said):
        bad["zero"] = spoiled(value, 0.0)
    return bad


@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_of_each_argument_is_refused_by_its_name(member, call):
    accepted = []
    for name, value in member.arguments(call).items():
        if not (is_numeric(value) or is_row(value)):
            continue
        for kind, bad in bad_inputs(member, name, value).items():
            try:
                answer = member(call, **{name: bad})
            except InputError as error:
                if not str(error.argument).startswith(name):
                    accepted.append(f"{name} {kind}: named {error.argument}")
            except Exception as error:
                accepted.append(f"{name} {kind}: {type(error).__name__} {str(error)[:80]}")
            else:
                accepted.append(f"{name} {kind}: answered {str(answer)[:80]}")
    assert not accepted, "\n".join(accepted)


@pytest.mark.usefixtures("unchecked_types")
def test_choices_that_there_are_not_are_refused_by_the_name_of_the_argument(member, call):
    for name, value in member.arguments(call).items():
        if isinstance(value, str) and '"' in member.explained[name]:
            with pytest.raises(InputError) as caught:
                member(call, **{name: "frob"})
            assert caught.value.argument == name


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_an_array_of_another_shape_is_refused_or_fits(member, call):
    wrong = []
    for name, value in member.arguments(call).items():
        if is_numeric(value) and np.ndim(value):
            for kind, shaped in {"scalar": 1.0, "nested": np.full((2, 3, 5, 7), 0.5), "empty": []}.items():
                try:
                    result = list(numbers(member(call, **{name: shaped})))
                except InputError:
                    continue
                except Exception as error:
                    wrong.append(f"{name} {kind}: {type(error).__name__} {str(error)[:80]}")
                else:
                    if any(np.isnan(part).any() for part in result):
                        wrong.append(f"{name} {kind}: NaN")
    assert not wrong, "\n".join(wrong)


# What it costs.

MOST_PROGRAMS = 2
# Where it is used first in a process, diffrax computes two constants, each by a program, whatever is integrated.
INTEGRATED = {
    "neuron.function_space_flow",
    "neuron.interpolator",
    "wide.deep_isotropic_flow",
    "wide.isotropic_flow",
}


@pytest.mark.slow
def test_its_first_call_compiles_at_most_two_programs(member):
    if member.name in INTEGRATED:
        assert member.programs == 1 + 2
    else:
        assert member.programs <= MOST_PROGRAMS


def test_its_second_call_compiles_nothing(member, call):
    member(call)
    assert member.programs_of(call) == 0


# What it does with numbers of any size.


def times(value: Any, factor: float) -> Any:
    """The argument in another unit, of the same type, for which nothing is compiled anew."""
    return type(value)(times(part, factor) for part in value) if isinstance(value, list | tuple) else value * factor


def lost_at(member: Member, call: Call, name: str, exponent: int) -> str:
    """What comes of an argument that is scaled; nothing where it is a finite answer or an error."""
    value = times(member.arguments(call)[name], 10.0**exponent)
    try:
        with np.errstate(all="ignore"):
            result = list(numbers(member(call, **{name: value})))
    except InputError:
        return ""
    except Exception as error:
        return f"{name}·1e{exponent}: {type(error).__name__} {str(error)[:80]}"
    if any(np.isnan(part).any() for part in result):
        return f"{name}·1e{exponent}: NaN"
    may_be_infinite = "∞" in member.doc or "infinite" in member.doc
    if not may_be_infinite and any(np.isinf(part).any() for part in result):
        return f"{name}·1e{exponent}: infinite"
    return ""


@pytest.mark.slow
def test_scaled_input_gives_a_finite_answer_or_an_error_by_the_programs_there_are(member, call):
    member(call)
    before = programs_so_far()
    floating = [name for name, value in member.arguments(call).items() if is_floating(value) and np.any(value)]
    lost = (lost_at(member, call, name, exponent) for name in floating for exponent in (-160, -20, 20, 160))
    found = list(filter(None, lost))
    assert not found, "\n".join(found)
    assert programs_so_far() == before
