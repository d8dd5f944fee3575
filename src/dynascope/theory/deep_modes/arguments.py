"""Depths and strengths, checked."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.theory.modes.growth import real_array

__all__ = ["broadcast_floats", "checked_depth"]


def checked_depth(depth: Any, *, least: int = 1) -> int:
    """The number of layers as a plain number."""
    whole = not isinstance(depth, Tracer) and np.ndim(depth) == 0 and depth == np.floor(depth) and depth >= least
    require(
        whole and math.isfinite(depth),
        f"depth is {depth}",
        argument="depth",
        value=str(depth),
        remedy=f"choose a whole number of layers from {least}",
    )
    return int(depth)


def broadcast_floats(**arguments: Any) -> list[Array]:
    """The arguments as arrays of one shape and type."""
    arrays = [real_array(name, value) for name, value in arguments.items()]
    dtype = jnp.result_type(*arrays)
    try:
        return list(jnp.broadcast_arrays(*(array.astype(dtype) for array in arrays)))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(arguments, arrays, strict=True))
        raise InputError(
            f"the shapes do not broadcast ({shapes})",
            argument=next(iter(arguments)),
            remedy="give shapes that fit together",
        ) from None
