"""The parameters in a JAX tree, named by their paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.validation import require, require_jax_arrays

__all__ = ["ParameterTree", "path_name"]


class ParameterTree:
    """Splits trees of one structure into recorded parameters and other leaves.

    Args:
        params: A tree whose floating-point arrays are the parameters.
        selected: Which parameters are recorded, by name.

    Raises:
        InputError: If no parameters are recorded, or if an array is distributed over several processes.

    Example:
        >>> tree = ParameterTree({"layers": [np.ones(2), np.zeros(3)]}, lambda name: name != "layers.1")
        >>> tree.split({"layers": [np.ones(2), np.zeros(3)]})[0]
        {'layers.0': array([1., 1.])}
    """

    def __init__(self, params: Any, selected: Callable[[str], bool]):
        require_jax_arrays(params=params)
        found, self._structure = jax.tree_util.tree_flatten_with_path(params)
        self._names = [path_name(path) for path, _ in found]
        require(
            len({*self._names}) == len(self._names),
            "two leaves of params have the same path",
            argument="params",
            value=next((name for name in self._names if self._names.count(name) > 1), ""),
            remedy='use names without "."',
        )
        self._recorded = [
            name for name, (_, leaf) in zip(self._names, found, strict=True) if _is_parameter(leaf) and selected(name)
        ]
        require(
            self._recorded,
            "params has no parameters to record",
            argument="params",
            value=len(found),
            remedy="give a tree with floating-point arrays, and a filter that selects some of them",
        )
        require(
            all(leaf.is_fully_addressable for _, leaf in found if isinstance(leaf, jax.Array)),
            "params is distributed over several processes",
            argument="params",
            value=jax.process_count(),
            remedy="give arrays that are entirely in one process",
        )

    def split(self, params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the recorded parameters and all other leaves by name.

        Raises:
            InputError: If the tree has a different structure.
        """
        leaves, structure = jax.tree.flatten(params)
        require(
            structure == self._structure,
            "the structure of params differs from that of the initial parameters",
            argument="params",
            value=len(leaves),
            remedy="give the parameters of the same model in each step",
        )
        found = dict(zip(self._names, leaves, strict=True))
        weights = {name: found[name] for name in self._recorded}
        return weights, {name: leaf for name, leaf in found.items() if name not in weights}

    def join(self, weights: Mapping[str, Any], rest: Mapping[str, Any]) -> Any:
        """Return the tree with these leaves."""
        return jax.tree.unflatten(
            self._structure, [weights[name] if name in weights else rest[name] for name in self._names]
        )

    def leaf(self, params: Any, name: str, argument: str) -> Any:
        """Return one leaf by name; `argument` is the name of the option in messages.

        Raises:
            InputError: If the tree has no such leaf.
        """
        weights, rest = self.split(params)
        require(
            name in weights or name in rest,
            f"params has no leaf {name!r}",
            argument=argument,
            value=name,
            remedy=f"choose from {', '.join(self._names)}",
        )
        return weights.get(name, rest.get(name))

    def gradients(self, gradients: Any) -> dict[str, Any]:
        """Return gradients by the names of the recorded parameters, zero for those without a gradient.

        Raises:
            InputError: If no leaf has the path of a recorded parameter.
        """
        found = {path_name(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(gradients)[0]}
        known = {name: jnp.asarray(found[name]) for name in self._recorded if name in found}
        require(
            known,
            "no leaf of gradients has the path of a parameter",
            argument="gradients",
            value=sorted(found)[:3],
            remedy="give the tree that jax.grad returns for these parameters",
        )
        return {name: known.get(name, jnp.zeros(())) for name in self._recorded}


def path_name(path: Any) -> str:
    """Return the path of a leaf in a tree as a name, such as `layers.0.weight`.

    Example:
        >>> [path_name(path) for path, _ in jax.tree_util.tree_flatten_with_path({"layers": [1.0, 2.0]})[0]]
        ['layers.0', 'layers.1']
    """
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_parameter(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)
