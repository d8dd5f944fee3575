"""Find the inputs of the activation functions in any JAX function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from dynascope.compilation.nested import evaluate
from dynascope.probes.kernel.examples import count_rows

__all__ = ["activation_inputs"]

_NAMES = "relu", "relu6", "leaky_relu", "silu", "elu", "celu", "selu", "mish", "hard_silu"
_CALLS = "jit", "pjit", "closed_call", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call"


def activation_inputs(apply: Callable[[Any], Any], inputs: Any) -> dict[str, jax.Array]:
    """Return the inputs of the activation functions in the traced function, with the examples along the first axis.

    Activation functions are `relu`, `relu6`, `leaky_relu`, `silu`, `elu`, `celu`, `selu`, `mish` and `hard_silu` of
    `jax.nn`. Calls of `jax.nn.gelu` cannot be recognised in the traced program. Loops and branches are not searched.

    Args:
        apply: A function of the inputs.
        inputs: A tree of arrays with the examples along the first axis of each.

    Returns:
        The inputs by the names of the functions. The names of repeated calls end in #2, #3 and so on.

    Example:
        >>> import jax.numpy as jnp
        >>> apply = lambda x: jax.nn.relu(jax.nn.silu(x) - 1)
        >>> {name: z.shape for name, z in activation_inputs(apply, jnp.ones((5, 3))).items()}
        {'silu': (5, 3), 'relu': (5, 3)}
    """
    found = _captured(apply, inputs)
    axes = _example_axes(apply, inputs, {name: z.shape for name, z in found.items()})
    return {name: jnp.moveaxis(found[name], axis, 0) for name, axis in axes.items() if found[name].ndim > 1}


def _captured(apply: Callable[[Any], Any], inputs: Any) -> dict[str, jax.Array]:
    found: dict[str, jax.Array] = {}
    program = jax.make_jaxpr(apply)(inputs)
    _run(program.jaxpr, program.consts, jax.tree.leaves(inputs), found)
    return found


def _example_axes(apply: Callable[[Any], Any], inputs: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the axis of the examples: the only one whose length depends on the number of examples.

    `jax.vmap` may place the examples along any axis.
    """
    count = count_rows(inputs)
    longer = jax.tree.map(lambda each: jax.ShapeDtypeStruct((count + 1, *each.shape[1:]), each.dtype), inputs)
    others = {name: z.shape for name, z in jax.eval_shape(lambda x: _captured(apply, x), longer).items()}
    axes = {}
    for name, shape in shapes.items():
        changed = [k for k, (one, other) in enumerate(zip(shape, others.get(name, ()), strict=False)) if one != other]
        if len(changed) == 1:
            axes[name] = changed[0]
    return axes


def _run(program: Jaxpr, constants: Any, arguments: list[Any], found: dict[str, jax.Array]) -> list[Any]:
    known = dict(zip([*program.constvars, *program.invars], [*constants, *arguments], strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else known[atom]

    for equation in program.eqns:
        results = _equation(equation, [read(each) for each in equation.invars], found)
        known.update(zip(equation.outvars, results, strict=True))
    return [read(each) for each in program.outvars]


def _equation(equation: JaxprEqn, values: list[Any], found: dict[str, jax.Array]) -> list[Any]:
    called = equation.primitive.name in _CALLS
    name = equation.params.get("name", "") if called else ""
    if name in _NAMES:
        call, number = name, 1
        while call in found:
            number += 1
            call = f"{name}#{number}"
        found[call] = values[0]
        return evaluate(equation, values)
    body = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    if called and body is not None:
        inner, constants = (body.jaxpr, body.consts) if hasattr(body, "consts") else (body, ())
        return _run(inner, constants, values, found)
    return evaluate(equation, values)
