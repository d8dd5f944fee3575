"""Compiled derivatives of a JAX function, from which its kernel is computed, and the cost of its forward pass."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import jit
from dynascope.compilation.frameworks import also_in_pytorch
from dynascope.probes.kernel.conventions import Contraction
from dynascope.probes.kernel.cost import EXACT, Size
from dynascope.probes.kernel.dense_tracing import dense_uses, layer_signals
from dynascope.probes.kernel.dense_uses import DenseUse
from dynascope.probes.kernel.differentiable import Differentiable, join_blocks
from dynascope.probes.kernel.examples import count_rows, require_examples, rows_of
from dynascope.probes.kernel.model import Model, check_inputs, rates_of, require_numbers, split
from dynascope.probes.kernel.rates import rated_by_entry
from dynascope.validation import require_finite_values, require_jax_arrays

__all__ = ["JaxFunction", "differentiable"]


@also_in_pytorch("dynascope.torch.kernel.checks")
def differentiable(
    apply: Callable[[Any, Any], Any], params: Any, x: Any, other: Any, rates: Any, *, runs: bool = True
) -> tuple[Differentiable, Size]:
    """Validate the arguments of `neural_tangent_kernel`, and return the function and the sizes for `cost_of`.

    Args:
        apply: As for `neural_tangent_kernel`, in JAX or PyTorch; likewise for the other arguments.
        params: Parameters.
        x: Inputs.
        other: A second set of inputs.
        rates: Learning rates.
        runs: Whether the function may be evaluated to check its outputs; PyTorch code is always evaluated.
    """
    require_jax_arrays(params=params, x=x, other=other)
    model, arrays = split(apply, params)
    eta = rates_of(model, arrays[0], rates)
    for each in arrays[0] if runs else ():
        require_finite_values("params", each)
    for name, inputs in (("x", x), ("other", other)):
        if inputs is not None or name == "x":
            require_examples(name, inputs, kind="array")
            for each in jax.tree.leaves(inputs):
                require_numbers(name, each)
            if runs:
                check_inputs(model, arrays, inputs)
    example = jax.eval_shape(lambda: jax.tree.map(lambda each: jnp.asarray(each)[0], x))
    leaves, structure = jax.tree.flatten((arrays, example))
    shapes = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in leaves)
    forward, uses = _traced(model, structure, shapes, rated_by_entry(eta))
    rows, columns = count_rows(x), count_rows(x if other is None else other)
    return JaxFunction(model, eta, uses, arrays), Size(rows, columns, other is None, **forward, uses=uses)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["arrays", "rates"], meta_fields=["model", "uses"])
@dataclasses.dataclass(frozen=True)
class JaxFunction(Differentiable):
    """A JAX function; `arrays` are its parameters and its other arrays."""

    arrays: Any  # `Arrays`; JAX transformations can replace the leaves
    leaves = "arrays"
    choices = (EXACT,)
    join = staticmethod(jit(join_blocks, static_argnums=(1, 2, 3)))
    from_jacobians = jit(Differentiable.from_jacobians, static_argnames=("contraction", "together"))
    from_signals = jit(Differentiable.from_signals, static_argnames="contraction")

    @property
    def parameters(self) -> Sequence[jax.Array]:
        """The floating-point arrays."""
        return self.arrays[0]

    def in_turn(self, needed: Any, total: Any) -> tuple[Any, Any]:
        """Add a barrier; otherwise the Jacobians of all layers would be in memory at once."""
        return jax.lax.optimization_barrier((needed, total))

    def blocks(self, inputs: Any, length: int) -> list[Any]:
        """Split into blocks of equal length for one shared program; the last is padded with its last example."""
        inputs = jax.tree.map(lambda each: each if isinstance(each, jax.Array) else np.asarray(each), inputs)
        n = count_rows(inputs)
        if length >= n:
            return [inputs]
        return [rows_of(inputs, np.minimum(np.arange(start, start + length), n - 1)) for start in range(0, n, length)]

    @functools.partial(jit, static_argnames=("uses", "places"))
    def signals(self, block: Any, uses: tuple[DenseUse, ...], places: tuple[int, ...]) -> Any:
        """Compute the signals in a separate program, which is compiled once for all pairs of blocks."""
        return jax.vmap(lambda example: layer_signals(self.model, uses, places, self.arrays, example))(block)

    @functools.partial(jit, static_argnames="contraction")
    def by_columns(self, x: Any, other: Any, contraction: Contraction) -> jax.Array:
        """Compute the kernel one column after the other."""
        parameters, frozen = self.arrays

        def rows(tangent):
            def outputs(p):
                return jax.vmap(lambda each: self.model.outputs(p, frozen, each))(x)

            return jax.jvp(outputs, (parameters,), (tangent,))[1]

        def columns(example):
            outputs, pull = jax.vjp(lambda p: self.model.outputs(p, frozen, example), parameters)
            unit = jnp.eye(outputs.size, dtype=outputs.dtype)

            def column(a):
                gradient = pull(unit[a])[0]
                if self.rates is not None:
                    gradient = tuple(rate * each for rate, each in zip(self.rates, gradient, strict=True))
                found = rows(gradient)
                return found if contraction == "full" else found[:, a]

            return jax.lax.map(column, jnp.arange(outputs.size))

        found = jax.lax.map(columns, x if other is None else other)
        if contraction == "full":
            return jnp.transpose(found, (2, 3, 0, 1))
        found = jnp.transpose(found, (2, 0, 1))
        return found if contraction == "diagonal" else jnp.mean(found, axis=-1)

    @functools.partial(jit, static_argnames="draws")
    def projected(self, block: Any, *, draws: int, seed: Any) -> jax.Array:
        """Compute the projections one direction at a time."""
        parameters, frozen = self.arrays

        def outputs(p):
            return jax.vmap(lambda each: self.model.outputs(p, frozen, each))(block)

        def along(number):
            keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), number), len(parameters))
            direction = tuple(jax.random.normal(k, p.shape, p.dtype) for k, p in zip(keys, parameters, strict=True))
            if self.rates is not None:
                direction = tuple(jnp.sqrt(rate) * each for rate, each in zip(self.rates, direction, strict=True))
            return jax.jvp(outputs, (parameters,), (direction,))[1]

        return jnp.moveaxis(jax.lax.map(along, jnp.arange(draws)), 0, -1)


@functools.lru_cache(maxsize=64)
def _traced(
    model: Model, structure: Any, shapes: tuple[jax.ShapeDtypeStruct, ...], excluded: frozenset[int]
) -> tuple[dict[str, Any], tuple[DenseUse, ...]]:
    """Return the size of the forward pass on one example, and the uses of dense weights in it."""
    arrays, example = jax.tree.unflatten(structure, shapes)
    jaxpr = jax.make_jaxpr(model.outputs)(*arrays, example)
    # If a back end does not count operations, assume a dense network: one multiply-add per parameter.
    counted = jax.jit(model.outputs).lower(*arrays, example).cost_analysis() or {}
    sizes = tuple(each.size for each in arrays[0])
    forward = {
        "outputs": jaxpr.out_avals[0].size,
        "itemsize": max(each.dtype.itemsize for each in arrays[0]),
        "forward": counted.get("flops") or 2.0 * sum(sizes),
        "activations": sum(each.aval.size for equation in jaxpr.eqns for each in equation.outvars),
        "parameters": sizes,
    }
    return forward, tuple(dense_uses(model, arrays, example, excluded=excluded))
