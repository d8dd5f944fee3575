"""The settings of training that a record stores as attributes: optimiser, batch size and loss."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dynascope.theory.regimes import OptimizerSettings
from dynascope.validation import require

__all__ = ["settings_of", "training_attributes"]

# Under the names of PyTorch, if the optimiser has them.
_SETTINGS = (
    "momentum",
    "dampening",
    "nesterov",
    "betas",
    "eps",
    "weight_decay",
    "decoupled_weight_decay",
    "amsgrad",
    "maximize",
)


def training_attributes(
    optimizer: str, groups: Sequence[Mapping[str, Any]], *, batch_size: int | None, criterion: Any
) -> dict[str, Any]:
    """Return the attributes `optimizer`, `parameter_groups`, `batch_size` and `criterion` of a record.

    Attributes that are unknown are omitted. The settings are those at the start of the recording.

    Args:
        optimizer: Class of the optimiser; empty if unknown.
        groups: The parameter groups of the optimiser, as in PyTorch; empty if unknown.
        batch_size: Number of examples per step; None if unknown.
        criterion: The loss, a function or an object; None if unknown.

    Example:
        >>> training_attributes("SGD", [{"momentum": 0.9, "lr": 0.1}], batch_size=32, criterion=None)
        {'optimizer': 'SGD', 'parameter_groups': '[{"momentum": 0.9}]', 'batch_size': 32}
    """
    found: dict[str, Any] = {}
    if optimizer:
        found["optimizer"] = optimizer
    if groups:
        found["parameter_groups"] = json.dumps([_settings(group) for group in groups])
    if batch_size is not None:
        found["batch_size"] = int(batch_size)
    if criterion is not None:
        function = criterion.func if isinstance(criterion, functools.partial) else criterion
        found["criterion"] = getattr(function, "__name__", type(function).__name__)
    return found


def settings_of(settings: OptimizerSettings) -> tuple[str, dict[str, Any]]:
    """Return the class and the settings of an optimiser under the names of PyTorch; "SGDW" is SGD with decoupled decay.

    Raises:
        InputError: If both kinds of weight decay are positive, for which PyTorch has no name.

    Example:
        >>> settings_of(OptimizerSettings("adam", 1e-3, decoupled_decay=0.1))[0]
        'AdamW'
    """
    coupled, decoupled = settings.coupled_decay, settings.decoupled_decay
    require(
        coupled == 0 or decoupled == 0,
        f"settings has a coupled decay of {coupled:g} and a decoupled decay of {decoupled:g}",
        argument="settings",
        value=(coupled, decoupled),
        remedy="record one kind of weight decay, or omit settings",
    )
    shared = {"weight_decay": coupled or decoupled, "decoupled_weight_decay": decoupled > 0}
    suffix = "W" if decoupled > 0 else ""
    if settings.optimizer == "sgd":
        own = {"momentum": settings.momentum, "dampening": settings.dampening, "nesterov": settings.nesterov}
        return f"SGD{suffix}", own | shared
    return f"Adam{suffix}", {"betas": settings.betas, "eps": settings.epsilon} | shared


def _settings(group: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(group[name]) for name in _SETTINGS if group.get(name) is not None}


def _plain(value: Any) -> Any:
    """Return a setting, which may be a tensor, as a value that JSON can store."""
    if isinstance(value, bool):
        return value
    return [float(each) for each in value] if isinstance(value, tuple | list) else float(value)
