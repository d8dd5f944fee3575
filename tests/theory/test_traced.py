"""What theory functions answer where JAX traces them: the same when mapped, the slope as derivative, NaN outside."""

from __future__ import annotations

import contextlib
import functools
import itertools

import jax
import numpy as np
import pytest
from documented import is_numeric
from theory_functions import MEMBERS, NOT_NEGATIVE, POSITIVE
from traced_calls import TracedCalls, is_traceable, weighed
from traced_cases import KEPT, NEEDED, OTHERS, OUTSIDE, POINTS

from dynascope.errors import InputError
from dynascope.theory import transfer

DIFFERENTIABLE = list(dict.fromkeys(name.partition("-")[0] for name, *_ in POINTS))
# One of them is compiled by itself, and is not mapped; two more can be compiled, and are not differentiated.
COMPILABLE = [name for name in DIFFERENTIABLE if name != "neuron.function_space_flow"]
COMPILABLE += ["line_inputs.time_scale", "scalar_networks.growth_factor"]
of_each = pytest.mark.parametrize("name", dict.fromkeys([*COMPILABLE, *OUTSIDE]))


@functools.cache
def calls_of(name: str) -> TracedCalls:
    """The example of a function, or the other call of this name, and its changes, by one program for all tests."""
    function = MEMBERS[name.partition("-")[0]]
    example = function.calls[0]
    call = example._replace(arguments=example.arguments | OTHERS.get(name, NEEDED.get(name, {})))
    mapped = name not in OTHERS or name in OUTSIDE
    # Of what is said to be compilable only, no slope is asked.
    differentiated = function.name in DIFFERENTIABLE or name in OUTSIDE
    if mapped:
        traced = [argument for argument, value in call.arguments.items() if is_traceable(value)]
        places = [*traced, *OUTSIDE.get(name, ())]
    else:
        # One call at a time, of which nothing more is traced, is compiled in two thirds of the time.
        places = [place for case, *numbers in POINTS if case == name for place in {**numbers[0], **numbers[1]}]
    names = dict.fromkeys(place.partition(".")[0] for place in places)
    return TracedCalls(function, call, names, mapped=mapped, differentiated=differentiated)


# Zero but for the rounding of numbers of order one: deviations from collapse of classes of one size, and the loss of
# what interpolates, which is the square of such a number.
VANISHING = {"features.collapse_trajectory": 1e-15, "neuron.interpolator": 1e-29}


def assert_same(name, found, expected, rounding=1e-12):
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        # The compiler may order sums otherwise.
        least = max(rounding * np.abs(other).max(initial=0.0), VANISHING.get(name, 0.0))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=least)


def scaled(numbers, factors):
    return {
        place: jax.tree.map(lambda number, factor=factor: factor * number, value)
        for (place, value), factor in zip(numbers.items(), factors, strict=False)
    }


@pytest.mark.slow
@of_each
def test_compiled_and_mapped_over_many_it_gives_the_same_as_one_by_one(name):
    calls = calls_of(name)
    together, apart = (
        scaled(calls.plain, factors) for factors in (itertools.repeat(1.01), itertools.count(1.02, 0.01))
    )
    many = [{}, together, apart]
    for change, (found, slopes) in zip(many, calls.of(many), strict=True):
        alone = calls.alone(change)
        assert_same(name, found, alone)
        if name in OUTSIDE:
            assert all(np.isfinite(part).all() for part in jax.tree.leaves((found, slopes)))
            for one, other in zip(found, alone, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)


def along(calls, there, ways, step):
    """The answer and the gradient at a call, its derivative along the ways, and the slope between its neighbours."""
    start = {place: there[place] for place in ways}
    (parts, gradient), *neighbours = calls.of(
        [
            there | jax.tree.map(lambda number, way, by=by: number + by * step * way, start, ways)
            for by in (0, 2, -2, 1, -1)
        ]
    )
    farther, back, near, behind = (weighed(answer) for answer, _ in neighbours)
    slope = (8 * (near - behind) - (farther - back)) / (12 * step)
    products = jax.tree.map(lambda part, way: np.sum(part * way), {place: gradient[place] for place in ways}, ways)
    return parts, gradient, sum(jax.tree.leaves(products)), slope


@pytest.mark.slow
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_its_derivative_is_the_slope_between_neighbours(name):
    calls, random = calls_of(name), np.random.default_rng(0)
    # Each number moves by a share of itself, so that none leaves its domain.
    ways = jax.tree.map(lambda number: number * random.uniform(0.5, 1.0, number.shape), calls.plain)
    parts, gradient, derivative, slope = along(calls, calls.plain, ways, 1e-5)
    # What is differentiated is the answer.
    assert_same(name, parts, calls.alone({}))
    assert all(np.isfinite(part).all() for part in jax.tree.leaves(gradient))
    # The difference has the rounding of the total over the step; solvers of their own keep 1e-10 of it.
    assert derivative == pytest.approx(slope, rel=1e-5, abs=1e-5 * abs(weighed(parts)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "point", "held"), POINTS, ids=[f"{name}-{row}" for row, (name, *_) in enumerate(POINTS)]
)
def test_its_derivative_at_a_degenerate_point_is_the_slope_between_neighbours(name, point, held):
    calls, random = calls_of(name), np.random.default_rng(1)
    there = calls.change({**held, **point})
    ways = {place: random.normal(size=there[place].shape) for place in point}
    parts, _, derivative, slope = along(calls, there, ways, 1e-4)
    # Solvers keep 1e-10, and take other steps in a batch.
    assert_same(name, parts, calls.alone(there), rounding=1e-10)
    # The step to the fourth, and the solvers' 1e-10 over the step.
    assert derivative == pytest.approx(slope, rel=1e-6, abs=1e-5)


def test_layers_that_are_known_up_to_a_rotation_refuse_to_be_differentiated():
    with jax.enable_x64(True), pytest.raises(InputError, match="up to a rotation"):
        jax.grad(lambda target: transfer.converged_layers(target, 0.5, 2)[0].sum())(np.eye(2))


def outside(name, calls):
    """Numbers outside the domain, each with its place: negative ones where these are refused, and the table's."""
    for place, value in calls.plain.items():
        names = {place, f"{calls.function.name}.{place}"}
        if isinstance(value, np.ndarray) and names & (POSITIVE | NOT_NEGATIVE):
            yield place, -1 - np.abs(value)
    for place, values in OUTSIDE.get(name, {}).items():
        yield from ((place, value) for value in values)


@pytest.mark.slow
@of_each
def test_outside_its_domain_it_gives_nan_where_it_is_traced(name):
    calls, plausible = calls_of(name), []
    wrong = list(outside(name, calls))
    (inside, _), *others = calls.of([{}, *(calls.change({place: value}) for place, value in wrong)])
    for (place, value), (found, _) in zip(wrong, others, strict=True):
        kept = KEPT.get((name, place), set())
        for part, (one, other) in enumerate(zip(found, inside, strict=True)):
            if not (np.allclose(one, other, rtol=1e-9, atol=0) if part in kept else np.isnan(one).all()):
                plausible.append(f"{place} = {value}: part {part} is {one}")
    assert plausible == []


def answered(function, call, changed):
    """Nothing, as what is answered need not be of arrays."""
    function(call, **changed)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("name", MEMBERS)
def test_values_that_jax_traces_are_taken_or_refused(name):
    function = MEMBERS[name]
    call = function.calls[0]._replace(wide=True)
    found = {argument: value for argument, value in call.arguments.items() if is_traceable(value)}
    if found:
        arguments = jax.tree.map(lambda value: np.asarray(value, float), found, is_leaf=is_numeric)
        with jax.enable_x64(True), contextlib.suppress(InputError):
            jax.eval_shape(lambda changed: answered(function, call, changed), arguments)
