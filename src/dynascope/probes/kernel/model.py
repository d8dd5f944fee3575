"""The function whose derivatives the kernel algorithms compute, evaluated for one example at a time."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.probes.kernel.examples import require_independence, rows_of
from dynascope.probes.kernel.rates import NO_PARAMETER, layer_rates
from dynascope.validation import require

__all__ = ["Arrays", "Model", "check_inputs", "rates_of", "require_numbers", "split"]

Arrays = tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]


@dataclasses.dataclass(frozen=True)
class Model:
    """The static part of a compiled function: everything except the arrays.

    Attributes:
        apply: (params, inputs) → outputs.
        structure: The tree structure of the parameters.
        places: For each leaf, ("parameter" | "frozen", its index there), or ("constant", the leaf itself).
        reduction: None for all outputs, "pseudo" for c^(−1/2) Σ_a f_a, or the indices of the outputs to keep.
    """

    apply: Callable[[Any, Any], Any]
    structure: Any
    places: tuple[tuple[str, Any], ...]
    reduction: str | tuple[int, ...] | None = None

    def outputs(self, parameters: Any, frozen: Any, example: Any) -> jax.Array:
        """Compute the outputs for one example, flattened."""
        batch = jax.tree.map(lambda each: each[None], example)
        found = jnp.ravel(self.apply(self.tree(parameters, frozen), batch))
        if self.reduction is None:
            return found
        if self.reduction == "pseudo":
            return jnp.sum(found, keepdims=True) / found.size**0.5
        return found[jnp.asarray(self.reduction)]

    def tree(self, parameters: Any, frozen: Any) -> Any:
        """Rebuild the parameter tree that `apply` takes."""
        arrays: dict[str, Any] = {"parameter": parameters, "frozen": frozen}
        leaves = [place if kind == "constant" else arrays[kind][place] for kind, place in self.places]
        return jax.tree.unflatten(self.structure, leaves)


def split(apply: Callable[[Any, Any], Any], params: Any) -> tuple[Model, Arrays]:
    """Return the model, its parameters (the floating-point arrays of the tree), and its other arrays."""
    leaves, structure = jax.tree.flatten(params)
    places: list[tuple[str, Any]] = []
    parameters, frozen = [], []
    for leaf in leaves:
        kind = _kind(leaf)
        if kind == "constant":
            places.append((kind, leaf))
            continue
        require_numbers("params", leaf)
        arrays = parameters if kind == "parameter" else frozen
        places.append((kind, len(arrays)))
        # Unlike `jnp.asarray`, `device_put` requires no compilation.
        arrays.append(jax.device_put(leaf))
        require(
            not jnp.issubdtype(leaf.dtype, jnp.complexfloating),
            "a parameter is complex",
            argument="params",
            value=str(leaf.dtype),
            remedy="give its real and imaginary parts as two arrays",
        )
    require(
        parameters,
        "params contains no floating-point arrays",
        argument="params",
        value=len(leaves),
        remedy="give the parameter tree that apply takes as its first argument",
    )
    model = Model(apply, structure, tuple(places))
    try:
        hash(model)
    except TypeError:
        raise InputError(
            "apply, or a leaf of params that is not an array, cannot be hashed",
            argument="apply",
            value=type(apply).__name__,
            remedy="give a plain function of (params, x) and the module as params",
        ) from None
    return model, (tuple(parameters), tuple(frozen))


def check_inputs(model: Model, arrays: Arrays, inputs: Any) -> None:
    """Raise `InputError` if outputs are not finite, do not have one row per example, or depend on the batch."""
    if any(isinstance(each, Tracer) for each in jax.tree.leaves((arrays, inputs))):
        return
    few = rows_of(inputs, slice(0, 2))
    # Compare in NumPy, which needs no compilation.
    alone, together = map(np.asarray, _alone_and_together(model, arrays, few))
    require(
        together.size == alone.size and together.shape[:1] == alone.shape[:1],
        f"apply returns outputs of shape {together.shape} for {len(alone)} examples",
        argument="apply",
        value=together.shape,
        remedy="give a function that maps inputs (n, ...) to outputs (n, c), for example with jax.vmap",
    )
    require(
        bool(np.isfinite(alone).all()),
        "the outputs are not finite",
        argument="x",
        remedy="check the parameters and the inputs for NaN or infinite values",
    )
    require_independence(
        alone,
        together,
        float(jnp.finfo(alone.dtype).eps),
        remedy="freeze the statistics of batch normalisation and switch dropout off (equinox.nn.inference_mode; "
        "use_running_average=True and deterministic=True in flax)",
    )


@functools.partial(jit, static_argnames="model")
def _alone_and_together(model: Model, arrays: Arrays, few: Any) -> tuple[jax.Array, jax.Array]:
    alone = jax.vmap(lambda example: model.outputs(*arrays, example))(few)
    return alone, jnp.asarray(model.apply(model.tree(*arrays), few))


def rates_of(model: Model, parameters: Sequence[jax.Array], rates: Any) -> tuple[jax.Array | np.ndarray, ...] | None:
    """Return `layer_rates` for the parameters of a model."""
    numbers = [place if kind == "parameter" else NO_PARAMETER for kind, place in model.places]

    def convert(rate: Any, parameter: jax.Array) -> Any:
        # Use NumPy for known values, because it needs no compilation.
        return (jnp if isinstance(rate, Tracer) else np).asarray(rate, dtype=parameter.dtype)

    return layer_rates(jax.tree.unflatten(model.structure, numbers), parameters, rates, convert, kind="array")


def require_numbers(argument: str, leaf: Any) -> None:
    """Raise `InputError` for NumPy arrays of a type that JAX does not support."""
    kind = leaf.dtype if isinstance(leaf, np.ndarray) else None
    known = kind is None or (kind.isnative and (jnp.issubdtype(kind, jnp.number) or kind.kind == "b"))
    require(
        known,
        f"{argument} contains an array of type {kind}",
        argument=argument,
        value=str(kind),
        remedy="give arrays of numbers in the native byte order",
    )


def _kind(leaf: Any) -> str:
    if not isinstance(leaf, (np.ndarray, jax.Array)):
        return "constant"
    return "parameter" if jnp.issubdtype(leaf.dtype, jnp.floating) else "frozen"
