"""The forward pass of a JAX function with its pre-activations and features."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from dynascope.diagnosis.activation_inputs import activation_inputs
from dynascope.diagnosis.parameter_tree import path_name
from dynascope.diagnosis.rows import as_rows, feature_rows
from dynascope.validation import require

__all__ = ["ForwardFunction", "outputs_of"]


class ForwardFunction:
    """Computes outputs, and pre-activations and features as matrices; JAX can compile it.

    Args:
        apply: (params, inputs) → outputs (n, c), or (outputs, a tree of features).
        activations: (params, inputs) → {name: pre-activation}; None to find the pre-activations in the program.
        features: (params, inputs) → {name: features}, besides those that `apply` returns; None if there are none.
        layers: The names of the features to return, in this order; None for all.
        channels_second: Whether channels are the second axis of images.
    """

    def __init__(
        self,
        apply: Callable[[Any, Any], Any],
        *,
        activations: Callable[[Any, Any], Mapping[str, Any]] | None,
        features: Callable[[Any, Any], Mapping[str, Any]] | None,
        layers: Collection[str] | None,
        channels_second: bool,
    ):
        self._apply, self._activations, self._features = apply, activations, features
        self._layers, self._channels_second = layers, channels_second

    def __call__(self, params: Any, inputs: Any) -> tuple[Any, OrderedDict[str, Any], OrderedDict[str, Any]]:
        """Return outputs as `apply` returns them, and pre-activations and features by name, in order of evaluation."""
        outputs = outputs_of(self._apply(params, inputs))
        if self._activations is None:
            found: Mapping[str, Any] = activation_inputs(lambda x: outputs_of(self._apply(params, x)), inputs)
        else:
            found = self._activations(params, inputs)
            _require_arrays("activations", found)
        preactivations = OrderedDict(
            (name, as_rows(z, channels_second=self._channels_second and z.ndim > 3)) for name, z in found.items()
        )
        return outputs, preactivations, self._named_features(params, inputs, as_rows(outputs).shape[0])

    def _named_features(self, params: Any, inputs: Any, rows: int) -> OrderedDict[str, Any]:
        found = dict(_intermediates(self._apply(params, inputs)))
        if self._features is not None:
            given = self._features(params, inputs)
            _require_arrays("features", given)
            found |= given
        layers = found if self._layers is None else self._layers
        unknown = sorted({*layers} - {*found})
        require(
            not unknown,
            f"there are no features named {' or '.join(map(repr, unknown))}",
            argument="layers",
            value=unknown,
            remedy=f"choose from {', '.join(map(repr, found))}"
            if found
            else "pass features, or return (outputs, {name: features}) from apply",
        )
        return OrderedDict((name, feature_rows(found[name], rows)) for name in layers)


def outputs_of(found: Any) -> Any:
    """Return the outputs in the result of `apply`.

    Raises:
        InputError: If the result contains no floating-point array of outputs.
    """
    outputs = found[0] if isinstance(found, tuple) and len(found) == 2 else found
    require(
        isinstance(outputs, jax.Array) and outputs.ndim > 0 and jnp.issubdtype(outputs.dtype, jnp.floating),
        f"apply returns an object of type {type(found).__name__} without floating-point outputs",
        argument="apply",
        value=type(found).__name__,
        remedy="return a floating-point JAX array of shape (n, c), or a pair of it and a dictionary of features",
    )
    return outputs


def _intermediates(found: Any) -> Mapping[str, Any]:
    """Return the features in the result of `apply`: all floating-point arrays with two or more axes."""
    if not (isinstance(found, tuple) and len(found) == 2):
        return {}
    if isinstance(found[1], Mapping) and all(map(_is_array, found[1].values())):
        return found[1]  # in the order of the dictionary, whereas JAX sorts the names
    leaves = jax.tree_util.tree_flatten_with_path(found[1])[0]
    return {path_name(path): leaf for path, leaf in leaves if _is_array(leaf)}


def _require_arrays(argument: str, found: Any) -> None:
    named = isinstance(found, Mapping)
    wrong = [name for name, each in found.items() if not _is_array(each)] if named else []
    require(
        named and not wrong,
        f"{argument} returns an object of type {type(found[wrong[0]] if wrong else found).__name__}"
        + (f" for {wrong[0]!r}" if wrong else ""),
        argument=argument,
        value=wrong,
        remedy="return a dictionary of floating-point arrays of shape (n, …)",
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array) and value.ndim > 1 and jnp.issubdtype(value.dtype, jnp.floating)
