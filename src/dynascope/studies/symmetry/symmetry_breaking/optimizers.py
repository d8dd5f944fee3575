"""The compared optimisers, and the learning rates among which tuning chooses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import optax

from dynascope.training import ecd, soap

__all__ = ["ADAPTIVE", "OPTIMIZERS", "SIMPLE", "Optimizer", "built"]


class Optimizer(NamedTuple):
    """An optimiser and the learning rates among which tuning chooses.

    Attributes:
        build: Function from a learning rate to an optax transformation.
        rates: Learning rates in increasing order.
    """

    build: Callable[..., Any]
    rates: tuple[float, ...]


_SMALL_RATES = 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1
OPTIMIZERS = {
    "AdamW": Optimizer(optax.adamw, _SMALL_RATES),
    "SOAP": Optimizer(soap, _SMALL_RATES),
    "SGD": Optimizer(functools.partial(optax.sgd, momentum=0.9), (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)),
    "ECD": Optimizer(ecd, (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)),
}
ADAPTIVE, SIMPLE = ("AdamW", "SOAP"), ("SGD", "ECD")


# Cached, because programs are compiled once for each function object.
@functools.cache
def built(name: str, target_loss: float) -> Callable[..., Any]:
    """Return the function from a learning rate to an optax transformation."""
    build = OPTIMIZERS[name].build
    return functools.partial(build, target_loss=target_loss) if name == "ECD" else build
