"""Modules of equinox whose weights NumPy draws, as JAX compiles a program for weights of each shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np


def drawn(make: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What `make` makes of these, with all its arrays as wide as equinox draws weights."""
    random = np.random.default_rng(0)

    def weights(leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        width = np.prod(leaf.shape[1:]) ** -0.5
        return jax.device_put(random.uniform(-width, width, leaf.shape).astype(leaf.dtype))

    shapes = eqx.filter_eval_shape(lambda: make(*arguments, **options, key=jax.random.key(0)))
    return jax.tree.map(weights, shapes)
