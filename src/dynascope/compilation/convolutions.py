"""Give the convolutions of a program the order of axes in which a processor is fast."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun

from dynascope.compilation.nested import primitives

__all__ = ["with_fast_convolutions"]

_CONVOLUTION = "conv_general_dilated"

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def with_fast_convolutions(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The same function with every convolution in the order of axes that a processor has a fast kernel for.

    A processor multiplies images with the features last by filters with the outputs last: ten to a hundred times as
    fast as in any other order, of which XLA makes plain loops. XLA turns the axes of convolutions to that order itself
    but not within a loop, such as a training. Here the finished program is gone through, with its gradients and loops,
    and axes are turned before and after each convolution. What is computed is the same but for the order of sums.

    Args:
        function: Traceable function. What is no array in its arguments and results is part of the program.

    Example:
        >>> def smooth(image):
        ...     filters = jax.numpy.full((1, 1, 3, 3), 1 / 9)
        ...     once = lambda _, image: jax.lax.conv(image, filters, (1, 1), "SAME")
        ...     return jax.lax.fori_loop(0, 4, once, image)
        >>> image, fast = jax.numpy.ones((1, 1, 16, 16)), with_fast_convolutions(smooth)
        >>> ["[b, 0, 1, f]" in jax.jit(each).lower(image).as_text() for each in (smooth, fast)]
        [False, True]
        >>> bool(abs(fast(image) - smooth(image)).max() < 1e-6)
        True
    """

    @functools.wraps(function)
    def turned(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> Any:
        program, shape, rest = eqx.filter_make_jaxpr(function)(*arguments, **named)
        arrays = jax.tree.leaves(eqx.filter((arguments, named), eqx.is_array))
        results = jaxpr_as_fun(fast_convolutions(program))(*arrays)
        return eqx.combine(jax.tree.unflatten(jax.tree.structure(shape), results), rest)

    # Its arguments have names; but equinox warns where what is wrapped is a transformed function.
    vars(turned)["__signature__"] = inspect.signature(function)
    del vars(turned)["__wrapped__"]
    return turned


def fast_convolutions(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the axes of its convolutions turned, those of the programs that it calls too."""
    if _CONVOLUTION not in primitives(program.jaxpr, {}):
        return program
    known: dict[int, Jaxpr] = {}
    return program.replace(jaxpr=_turned(program.jaxpr, known))


def _turned(program: Jaxpr, known: dict[int, Jaxpr]) -> Jaxpr:
    """What has no convolution stays the same object, and what is called twice one, so that it is compiled once."""
    if id(program) not in known:
        lines = [_turned_line(line, known) for line in program.eqns]
        same = all(new is old for new, old in zip(lines, program.eqns, strict=True))
        known[id(program)] = program if same else program.replace(eqns=lines)
    return known[id(program)]


def _turned_line(line: JaxprEqn, known: dict[int, Jaxpr]) -> JaxprEqn:
    if line.primitive.name == _CONVOLUTION:
        return _turned_convolution(line)

    def part(value: Any) -> Any:
        if isinstance(value, Jaxpr):
            return _turned(value, known)
        if isinstance(value, ClosedJaxpr):
            new = _turned(value.jaxpr, known)
            return value if new is value.jaxpr else value.replace(jaxpr=new)
        return value

    called = jax.tree.map(part, line.params, is_leaf=lambda value: isinstance(value, (Jaxpr, ClosedJaxpr)))
    before, after = jax.tree.leaves(line.params), jax.tree.leaves(called)
    return line if all(new is old for new, old in zip(after, before, strict=True)) else line.replace(params=called)


def _turned_convolution(line: JaxprEqn) -> JaxprEqn:
    """One line that computes what a convolution does."""
    axes = line.params["dimension_numbers"]
    (batch, feature, *space), (outputs, inputs, *window), (row, channel, *place) = axes
    images, filters, found = (batch, *space, feature), (*window, inputs, outputs), (row, *place, channel)
    last = len(found) - 1
    ordered = tuple(range(last + 1))
    if images == filters == found == ordered:
        return line
    fast = jax.lax.ConvDimensionNumbers(
        (0, last, *range(1, last)), (last, last - 1, *range(last - 1)), (0, last, *range(1, last))
    )

    def convolved(image: Any, filter_: Any) -> Any:
        turned = image.transpose(images), filter_.transpose(filters)
        result = line.primitive.bind(*turned, **{**line.params, "dimension_numbers": fast})
        return result.transpose(sorted(ordered, key=found.__getitem__))

    program = jax.make_jaxpr(jax.jit(convolved))(*(each.aval for each in line.invars))
    (call,) = program.eqns
    return call.replace(invars=line.invars, outvars=line.outvars)
