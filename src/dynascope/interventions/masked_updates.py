"""An optimiser that keeps pruned weights at zero."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from dynascope.validation import require

__all__ = ["masked"]


class MaskedState(NamedTuple):
    """State of `masked`.

    Attributes:
        inner: State of the wrapped optimiser.
        mask: {path of an array: mask}.
    """

    inner: Any
    mask: dict[str, Any]


def masked(
    optimizer: optax.GradientTransformation | optax.GradientTransformationExtraArgs, mask: Any = None
) -> optax.GradientTransformationExtraArgs:
    """Keep pruned weights at zero during training with any optimiser.

    The gradients of pruned weights are set to zero before they reach the optimiser, so that norms and averages of
    gradients contain only the kept weights. The updates set pruned weights to zero, even with weight decay or noise.

    Args:
        optimizer: An optax transformation.
        mask: `Pruned.mask`: a tree with the structure of the weights, or of a part of it, whose leaves are True where a
            weight is kept. If None, all weights that are zero at initialisation are pruned, except in arrays with fewer
            than two axes; in an ensemble, each member then has a separate mask.

    Returns:
        An optax transformation.

    Raises:
        InputError: From `init` if the mask of an array has another shape, or if the mask contains an unknown array.

    Example:
        >>> import numpy as np
        >>> optimizer = masked(optax.sgd(0.1), {"w": np.array([True, False])})
        >>> weights = {"w": jnp.array([1.0, 0.0]), "b": jnp.array([2.0])}
        >>> moves, _ = optimizer.update(weights, optimizer.init(weights), weights)
        >>> moves["w"] / 0.1, moves["b"] / 0.1
        (Array([-1.,  0.], dtype=float32), Array([-2.], dtype=float32))
    """
    inner = optax.with_extra_args_support(optimizer)

    def initial(params: Any) -> MaskedState:
        arrays = _by_path(params)
        if mask is None:
            masks = {path: leaf != 0 for path, leaf in arrays.items() if jnp.ndim(leaf) > 1}
        else:
            masks = {path: jnp.asarray(leaf, bool) for path, leaf in _by_path(mask).items()}
            for path, each in masks.items():
                shape = jnp.shape(arrays[path]) if path in arrays else None
                require(
                    shape == each.shape,
                    f"the mask of {path} has shape {each.shape}"
                    if shape is not None
                    else f"mask contains {path}, which is not an array of the network",
                    argument="mask",
                    value=each.shape,
                    remedy=f"give a mask of shape {shape}" if shape is not None else "give the mask of this network",
                )
        return MaskedState(inner.init(params), masks)

    def update(updates: Any, state: MaskedState, params: Any = None, **extra: Any) -> tuple[Any, MaskedState]:
        kept = _where(state.mask, updates, None)
        moves, within = inner.update(kept, state.inner, params, **extra)
        return _where(state.mask, moves, params), MaskedState(within, state.mask)

    # The type of `update` in optax requires all arguments to be named as in optax.
    return optax.GradientTransformationExtraArgs(initial, update)  # type: ignore[arg-type]


def _where(masks: dict[str, Any], tree: Any, removed: Any) -> Any:
    """Keep the entries that the masks keep, and replace all others with the negative of `removed`, or with zero."""
    others = {} if removed is None else _by_path(removed)

    def each(path: Any, leaf: Any) -> Any:
        name = jax.tree_util.keystr(path)
        if name not in masks:
            return leaf
        return jnp.where(masks[name], leaf, 0 - others[name] if name in others else jnp.zeros_like(leaf))

    return jax.tree_util.tree_map_with_path(each, tree)


def _by_path(tree: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
