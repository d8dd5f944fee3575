"""Find the dense layers and convolutions of any JAX function, and compute their activations and signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from dynascope.compilation.nested import evaluate
from dynascope.probes.kernel.dense_uses import DenseUse, ReadProducts, Weight, joined_uses
from dynascope.probes.kernel.model import Arrays, Model

__all__ = ["dense_uses", "layer_signals"]

# Calls whose body is inlined if a weight enters; calls with custom derivative rules are not inlined.
_INLINED = ("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat2")


def dense_uses(model: Model, arrays: Any, example: Any, *, excluded: frozenset[int] = frozenset()) -> list[DenseUse]:
    """Find the products with parameters that are used only in products, in the order of evaluation.

    A parameter qualifies if it is used only as an operand of products without batch axes or as the kernel of
    convolutions without groups. Before that, the parameter may be transposed, cast, or multiplied by a number. `arrays`
    and `example` may contain shapes and dtypes instead of values.
    """
    jaxpr = jax.make_jaxpr(model.outputs)(*arrays, example)
    tracked = frozenset(i for i, p in enumerate(arrays[0]) if p.ndim >= 2) - excluded
    reader = _Reader(tracked, None)
    leaves = jax.tree.leaves((arrays, example))
    jax.eval_shape(lambda *each: reader.evaluate(jaxpr.jaxpr, jaxpr.consts, list(each)), *leaves)
    return reader.dense_uses()


def layer_signals(
    model: Model, uses: Sequence[DenseUse], places: Sequence[int], arrays: Arrays, example: Any
) -> tuple[dict[int, tuple[jax.Array, jax.Array]], dict[int, jax.Array]]:
    """Return (h (p, 1, k), D (c, p, 1, m)) of dense weights and Jacobians (c, size) of others, for one example."""
    parameters = arrays[0]
    dense = frozenset(use.parameter for use in uses)
    others = {i: parameters[i] for i in places}

    def forward(perturbations, free):
        merged = [free.get(i, p) for i, p in enumerate(parameters)]
        if not uses:
            return model.outputs(merged, arrays[1], example), []
        jaxpr = jax.make_jaxpr(model.outputs)(*arrays, example)
        reader = _Reader(dense, perturbations)
        leaves = [*merged, *jax.tree.leaves((arrays[1], example))]
        (outputs,) = reader.evaluate(jaxpr.jaxpr, jaxpr.consts, leaves)
        return outputs, reader.activations

    still = [jnp.zeros((use.positions, use.outputs), dtype=parameters[use.parameter].dtype) for use in uses]
    outputs, pull, activations = jax.vjp(forward, still, others, has_aux=True)
    signals, jacobians = jax.vmap(pull)(jnp.eye(outputs.size, dtype=outputs.dtype))
    rest = {i: jnp.reshape(each, (each.shape[0], -1)) for i, each in jacobians.items()}
    return joined_uses(uses, activations, signals), rest


class _Reader(ReadProducts):
    """Evaluates a program and propagates the tracked weights to the products that they enter."""

    def __init__(self, tracked: frozenset[int], perturbations: list[jax.Array] | None):
        super().__init__(perturbations)
        self.tracked = tracked

    def evaluate(self, jaxpr: Jaxpr, consts: Any, arguments: list[Any]) -> list[Any]:
        """Return the outputs of the whole program, whose first arguments are the parameters."""
        entering = [
            Weight(i, each, tuple(range(each.ndim)), 1.0) if i in self.tracked else each
            for i, each in enumerate(arguments)
        ]
        return [self._plain(each) for each in self._run(jaxpr, consts, entering)]

    def _run(self, jaxpr: Jaxpr, consts: Any, arguments: list[Any]) -> list[Any]:
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *arguments], strict=True))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else known[atom]

        for equation in jaxpr.eqns:
            results = self._equation(equation, [read(each) for each in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [read(each) for each in jaxpr.outvars]

    def _equation(self, equation: JaxprEqn, values: list[Any]) -> list[Any]:
        weights = [each for each in values if isinstance(each, Weight)]
        if not weights:
            return evaluate(equation, values)
        if equation.primitive.name in _INLINED and "jaxpr" in equation.params:
            body = equation.params["jaxpr"]
            inner, consts = (body.jaxpr, body.consts) if hasattr(body, "consts") else (body, ())
            return self._run(inner, consts, values)
        if len(weights) == 1:
            found = self._propagated(equation, values, weights[0])
            if found is not None:
                return [found]
        return evaluate(equation, [self._plain(each) for each in values])

    def _propagated(self, equation: JaxprEqn, values: list[Any], weight: Weight) -> Any:
        """Propagate the weight through an operation or into a product; return None if that is not possible."""
        name, params = equation.primitive.name, equation.params
        plain = [weight.value if each is weight else each for each in values]
        if name == "dot_general":
            return self._product(equation, plain, weight, 0 if values[0] is weight else 1)
        if name == "conv_general_dilated":
            return self._convolution(equation, plain, weight) if values[1] is weight else None
        gain, axes = weight.gain, weight.axes
        if name == "transpose":
            axes = tuple(axes[each] for each in params["permutation"])
        elif name in ("mul", "div"):
            number = plain[1] if values[0] is weight else plain[0]
            if jnp.ndim(number) or (name == "div" and values[1] is weight):
                return None
            gain = gain * number if name == "mul" else gain / number
        elif name == "neg":
            gain = -gain
        elif name != "copy" and not (
            name == "convert_element_type" and jnp.issubdtype(params["new_dtype"], jnp.floating)
        ):
            return None
        return Weight(weight.parameter, evaluate(equation, plain)[0], axes, gain)

    def _product(self, equation: JaxprEqn, plain: list[Any], weight: Weight, side: int) -> Any:
        contracted, batched = equation.params["dimension_numbers"]
        if weight.value.ndim != 2 or any(map(len, batched)) or len(contracted[side]) != 1:
            return None
        (summed,), (matching,) = contracted[side], contracted[1 - side]
        z = evaluate(equation, plain)[0]
        h = jnp.moveaxis(plain[1 - side], matching, -1)
        # The free axes of the left operand come first in z.
        return self.perturbed(weight, h, z, -1 if side else 0, weight.axes[summed])

    def _convolution(self, equation: JaxprEqn, plain: list[Any], weight: Weight) -> Any:
        params = equation.params
        ordered = weight.axes == tuple(range(weight.value.ndim))
        if params["feature_group_count"] != 1 or params["batch_group_count"] != 1 or not ordered:
            return None
        numbers = params["dimension_numbers"]
        patches = jax.lax.conv_general_dilated_patches(
            plain[0],
            filter_shape=[weight.value.shape[axis] for axis in numbers.rhs_spec[2:]],
            window_strides=params["window_strides"],
            padding=params["padding"],
            lhs_dilation=params["lhs_dilation"],
            rhs_dilation=params["rhs_dilation"],
            dimension_numbers=numbers,
        )
        features = numbers.out_spec[1]
        z = evaluate(equation, plain)[0]
        return self.perturbed(weight, jnp.moveaxis(patches, features, -1), z, features, -1)

    def _plain(self, value: Any) -> Any:
        """Return the plain value, and record that a weight is used outside products."""
        if not isinstance(value, Weight):
            return value
        self.used_elsewhere.add(value.parameter)
        return value.value
