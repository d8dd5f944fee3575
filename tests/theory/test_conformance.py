"""What every public theory function must be; a function that a face re-exports takes part without further words."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from documented import (
    Call,
    Member,
    is_floating,
    is_numeric,
    is_record,
    is_row,
    members,
    numbers,
    programs_so_far,
    spoiled,
)

from dynascope import theory
from dynascope.compilation import jit
from dynascope.errors import InputError

# What states domains computes nothing.
MEMBERS = {name: member for name, member in members(theory).items() if not name.startswith("domain.")}


@pytest.fixture(scope="module", params=MEMBERS.values(), ids=MEMBERS)
def member(request) -> Member:
    return request.param


@pytest.fixture
def call(member) -> Call:
    assert member.calls, "the example does not call it"
    return member.calls[0]


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


# What it may be put into.


def is_traceable(value: Any) -> bool:
    if is_record(value):
        return hasattr(value, "_fields") and all(map(is_traceable, value))
    return is_floating(value) or (is_row(value) and all(map(is_floating, value)))


def traced(call: Call, *, records: bool = False) -> dict[str, Any]:
    """The arguments that are numbers, as arrays of 64 bits, with or without records, whose parts belong together."""
    found = {
        name: value
        for name, value in call.arguments.items()
        if is_traceable(value) and (records or not is_record(value))
    }
    return jax.tree.map(lambda value: np.asarray(value, float), found, is_leaf=is_numeric)


def values(result: Any) -> list[jax.Array]:
    """The parts of a result that are floating-point numbers."""
    return [part for part in jax.tree.leaves(result) if jax.numpy.issubdtype(jax.numpy.result_type(part), np.floating)]


def is_compilable(member: Member) -> bool:
    return bool(re.search(r"\bcompile[ds]|differentia", member.doc)) and "Compiled;" not in member.doc


def is_differentiable(member: Member) -> bool:
    return bool(re.search(r"differentia(ble|ted)", member.doc))


def of_each(condition: Callable[[Member], bool]) -> pytest.MarkDecorator:
    chosen = [member for member in MEMBERS.values() if condition(member)]
    return pytest.mark.parametrize("function", chosen, ids=[member.name for member in chosen])


COMPILABLE, DIFFERENTIABLE = of_each(is_compilable), of_each(is_differentiable)


ROWS = 5  # calls in a batch


class Compiled(NamedTuple):
    """A function of all its arguments that are numbers, mapped over a batch of calls, in which JAX sees no value.

    Attributes:
        call: The call of the example that gives what the docstring asks for where values are traced.
        arguments: All that is traced, in 64 bits.
        both: The parts of the answer, and the slope of their sum in what is no record if the docstring promises one,
            of each call of a batch.
    """

    call: Call
    arguments: dict[str, Any]
    both: Callable[[dict[str, Any]], tuple[list[jax.Array], dict[str, Any]]]

    def of(self, changes: Sequence[dict[str, Any]]) -> list[tuple[list[np.ndarray], dict[str, Any]]]:
        """The parts and the slopes of calls with some arguments changed, which share one program."""
        found = []
        for first in range(0, len(changes), ROWS):
            batch = changes[first : first + ROWS]
            padded = [*batch, *[batch[0]] * (ROWS - len(batch))]
            rows = jax.tree.map(lambda *each: np.stack(each), *(self.arguments | change for change in padded))
            with jax.enable_x64(True):
                together = jax.device_get(self.both(rows))
            found += [jax.tree.map(lambda leaf, row=row: leaf[row], together) for row in range(len(batch))]
        return found


@functools.cache
def compiled(function: Member) -> Compiled:
    call = function.calls[-1]._replace(wide=True)
    plain = traced(call).keys() if is_differentiable(function) else ()

    @jit
    @jax.vmap
    def both(arguments: dict[str, Any]) -> tuple[list[jax.Array], dict[str, Any]]:
        def total(moved: dict[str, Any]) -> tuple[jax.Array, list[jax.Array]]:
            parts = values(function(call, **arguments | moved))
            return sum(part.sum() for part in parts), parts

        moved = {name: arguments[name] for name in plain}
        if not moved:
            return total(moved)[1], {}
        gradient, parts = jax.grad(total, has_aux=True)(moved)
        return parts, gradient

    return Compiled(call, traced(call, records=True), both)


# Zero but for the rounding of numbers of order one: deviations from collapse of classes of one size, and the loss of
# what interpolates, which is the square of such a number.
VANISHING = {"features.collapse_trajectory": 1e-15, "neuron.interpolator": 1e-29}


@pytest.mark.slow
@COMPILABLE
def test_compiled_and_mapped_over_many_it_gives_the_same_as_one_by_one(function):
    program = compiled(function)
    plain = traced(program.call)
    many = [{}, jax.tree.map(lambda value: 1.01 * value, plain)]
    for change, (together, _) in zip(many, program.of(many), strict=True):
        with jax.enable_x64(True):
            alone = values(function(program.call, **program.arguments | change))
        assert len(alone) == len(together) > 0
        for one, other in zip(alone, together, strict=True):
            # The compiler may order sums otherwise.
            least = max(1e-12 * np.abs(one).max(initial=0.0), VANISHING.get(function.name, 0.0))
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=least)


@pytest.mark.slow
@DIFFERENTIABLE
def test_its_derivative_is_the_slope_between_neighbours(function):
    program, step = compiled(function), 1e-5
    arguments = traced(program.call)
    random = np.random.default_rng(0)
    # Each number moves by a share of itself, so that none leaves its domain.
    moved = jax.tree.map(lambda value: value * random.uniform(0.5, 1.0, value.shape), arguments)
    there = [
        jax.tree.map(lambda value, way, by=by: value + by * step * way, arguments, moved) for by in (0, 2, -2, 1, -1)
    ]
    found = program.of(there)
    value, farther, back, near, behind = (sum(float(np.sum(part)) for part in parts) for parts, _ in found)
    gradient = found[0][1]
    with jax.enable_x64(True):
        known = sum(float(np.sum(part)) for part in values(function(program.call)))
    slope = (8 * (near - behind) - (farther - back)) / (12 * step)
    derivative = sum(jax.tree.leaves(jax.tree.map(lambda part, way: float((part * way).sum()), gradient, moved)))
    # What is differentiated is the answer; the compiler may order sums otherwise.
    assert value == pytest.approx(known, rel=1e-9)
    assert all(np.isfinite(part).all() for part in jax.tree.leaves(gradient))
    # The difference has the rounding of the total over the step; solvers of their own keep 1e-10 of it.
    assert derivative == pytest.approx(slope, rel=1e-5, abs=1e-5 * abs(value))


# Modes are learned alike whatever the noise is; a start is as balanced, and features leave as much, whatever the times.
OF_PARTS = {"balanced.gram", "features.kernel_regression_error", "transfer.transfer_error"}


@pytest.mark.slow
@COMPILABLE
def test_outside_its_domain_it_gives_nan_where_it_is_traced(function):
    program, plausible = compiled(function), []
    changes = {
        name: {name: -1 - np.abs(value)}
        for name, value in program.arguments.items()
        if isinstance(value, np.ndarray) and re.match(r"[^.;,]*? [>≥] 0\b", function.explained[name])
    }
    (inside, _), *others = program.of([{}, *changes.values()])
    for name, (outside, _) in zip(changes, others, strict=True):
        lost = [np.isnan(found).all() for found in outside]
        if function.name in OF_PARTS and any(lost):
            # What does not depend on the argument stays what it was.
            same = zip(lost, outside, inside, strict=True)
            lost = [each or np.allclose(found, expected, rtol=1e-9, atol=0) for each, found, expected in same]
        if not all(lost):
            plausible.append(name)
    assert plausible == []


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_values_that_jax_traces_are_taken_or_refused(member, call):
    def answered(changed: dict[str, Any]) -> None:
        member(call._replace(wide=True), **changed)

    arguments = traced(call, records=True)
    if arguments:
        with jax.enable_x64(True), contextlib.suppress(InputError):
            jax.eval_shape(answered, arguments)


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
