"""Memory layouts of convolutions for which XLA has fast kernels on CPUs."""

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
    """Return the same function with every convolution in the layout for which XLA has a fast CPU kernel.

    On a CPU, convolutions are ten to a hundred times as fast if the features are on the last axis of the images and the
    output features on the last axis of the filters. For any other layout, XLA generates plain loops. XLA changes the
    layout itself, but not inside loops such as a training loop. This function therefore transposes the axes before and
    after each convolution of the traced program, including its gradients and loops. The result is the same, up to the
    order of summation.

    Args:
        function: Traceable function. Arguments and results that are not arrays become constants of the program.

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

    # Keep the argument names; `__wrapped__` is removed because equinox warns if it is a transformed function.
    vars(turned)["__signature__"] = inspect.signature(function)
    del vars(turned)["__wrapped__"]
    return turned


def fast_convolutions(program: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program with transposed convolutions, including those in the programs that it calls."""
    if _CONVOLUTION not in primitives(program.jaxpr, {}):
        return program
    known: dict[int, Jaxpr] = {}
    return program.replace(jaxpr=_turned(program.jaxpr, known))


def _turned(program: Jaxpr, known: dict[int, Jaxpr]) -> Jaxpr:
    """Convert each program once, even if it is called twice; programs without convolutions remain unchanged."""
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
    """Return a call that computes the same convolution in the fast layout."""
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
