"""What every public theory function must be; a function that a face re-exports takes part without further words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from documented import Call, Member, is_floating, is_numeric, is_row, numbers, parts_of, spoiled
from theory_functions import NOT_NEGATIVE, POSITIVE, stated_bounds

from dynascope.errors import InputError

# What it says.


def test_its_docstring_explains_every_parameter_and_no_other(member):
    parameters = [name for name in member.signature.parameters if not name.startswith("_")]
    assert list(member.explained) == parameters


def test_its_example_calls_it(member):
    assert member.calls


# What it refuses.

RAGGED = [[1.0], [1.0, 2.0]]
# Arguments of which infinity is a legal value: a context that is infinitely long, and the end of training.
MAY_BE_INFINITE = {
    *("attention.attention_levels.context_length", "attention.attention_modes.context_length"),
    *("attention.linear_attention_staircase.context_length", "attention.merged_attention_staircase.context_length"),
    *("skills.multilinear.expected_loss.times", "skills.multilinear.skill_strengths.times"),
    *("skills.multilinear.training_loss.times",),
}


def places(member: Member, call: Call) -> dict[str, Any]:
    """The arguments, and the parts of records of which the annotations state bounds, by their places."""
    bounds, found = stated_bounds(member), {}
    for name, value in member.arguments(call).items():
        parts = {place: part for place, part in parts_of(name, value).items() if f"{member.name}.{place}" in bounds}
        found |= parts or {name: value}
    return found


def bad_inputs(member: Member, name: str, value: Any) -> dict[str, Any]:
    names = {name, f"{member.name}.{name}"}
    bad = {"NaN": spoiled(value, float("nan")), "text": spoiled(value, "frob"), "ragged": RAGGED}
    if not names & MAY_BE_INFINITE:
        bad["∞"] = spoiled(value, float("inf"))
    bad["−∞"] = spoiled(value, float("-inf"))
    if names & (POSITIVE | NOT_NEGATIVE):
        bad["negative"] = spoiled(value, -1.0)
    if names & POSITIVE:
        bad["zero"] = spoiled(value, 0.0)
    return bad


@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_of_each_argument_is_refused_by_its_name(member, call):
    accepted = []
    for name, value in places(member, call).items():
        if not (is_numeric(value) or is_row(value)):
            continue
        for kind, bad in bad_inputs(member, name, value).items():
            try:
                answer = member(call, **member.change(call, name, bad))
            except InputError as error:
                # A parameter object names its own field.
                if not (str(error.argument).startswith(name) or name.endswith(f".{error.argument}")):
                    accepted.append(f"{name} {kind}: named {error.argument}")
            except Exception as error:
                accepted.append(f"{name} {kind}: {type(error).__name__} {str(error)[:80]}")
            else:
                accepted.append(f"{name} {kind}: answered {str(answer)[:80]}")
    assert not accepted, "\n".join(accepted)


@pytest.mark.usefixtures("unchecked_types")
def test_choices_that_there_are_not_are_refused_by_the_name_of_the_argument(member, call):
    for name, value in member.arguments(call).items():
        if isinstance(value, str):
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


# What it does with numbers of any size.

# Those answer that something takes for ever, or is without bound.
ANSWER_INFINITY = {
    "noise.ecd_quadratic_loss",
    *("balanced.balanced_limit", "features.kernel_regression_error", "line_inputs.rescaling", "line_inputs.time_scale"),
    *(
        "scalar_networks.growth_limit",
        "scalar_networks.time_to_reach",
        "neuron.pattern_change",
        "neuron.rich_delay",
        "neuron.regime",
        "noise.thermometer",
    ),
}


def times(value: Any, factor: float) -> Any:
    """The argument in another unit, of the same type, for which nothing is compiled anew."""
    return type(value)(times(part, factor) for part in value) if isinstance(value, list | tuple) else value * factor


def lost_at(member: Member, call: Call, name: str, exponent: int) -> str:
    """What comes of an argument that is scaled; nothing where it is a finite answer or an error."""
    value = times(places(member, call)[name], 10.0**exponent)
    try:
        with np.errstate(all="ignore"):
            result = list(numbers(member(call, **member.change(call, name, value))))
    except InputError:
        return ""
    except Exception as error:
        return f"{name}·1e{exponent}: {type(error).__name__} {str(error)[:80]}"
    if any(np.isnan(part).any() for part in result):
        return f"{name}·1e{exponent}: NaN"
    if member.name not in ANSWER_INFINITY and any(np.isinf(part).any() for part in result):
        return f"{name}·1e{exponent}: infinite"
    return ""


@pytest.mark.slow
def test_scaled_input_gives_a_finite_answer_or_an_error(member, call):
    floating = [name for name, value in places(member, call).items() if is_floating(value) and np.any(value)]
    lost = (lost_at(member, call, name, exponent) for name in floating for exponent in (-160, -20, 20, 160))
    found = list(filter(None, lost))
    assert not found, "\n".join(found)
