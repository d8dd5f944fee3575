"""Settings of a PyTorch optimiser, read from its parameter groups or declared by the user."""
# pyright: reportMissingImports=false

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from dynascope.symmetry.step_rules import Rule
from dynascope.validation import require

__all__ = ["OptimizerSettings"]

_EQUAL = 1e-9  # relative tolerance of ratios of learning rates, which schedules keep up to rounding


class OptimizerSettings:
    """The update rule and the settings of an optimiser, as declared for charge laws.

    Attributes:
        declared: Rule, rates, momentum and weight decay, as `training.charge_statistics` accepts them.

    Args:
        optimizer: The optimiser.
        groups: The parameter group of each parameter in the symmetries, by path.
        rule: The declared rule; None to read it from the groups of `torch.optim.SGD`.
        momentum: The declared β; None to read it from the groups.
        weight_decay: The declared λ; None to read it from the groups.

    Raises:
        InputError: If no group contains a parameter of the symmetries, groups have different rules, or the rule is
            unknown.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        groups: Mapping[str, Mapping[str, Any]],
        rule: Rule | None,
        momentum: float | None,
        weight_decay: float | None,
    ):
        require(
            bool(groups) and all("lr" in group for group in groups.values()),
            "the optimizer does not train any of the parameters on which the symmetries act"
            if not groups
            else "the optimizer has no learning rate lr",
            argument="optimizer",
            value=type(optimizer).__name__,
            remedy="give the optimizer that trains this model",
        )
        require(
            rule is not None or isinstance(optimizer, torch.optim.SGD),
            f"rule is missing, and the charge laws under {type(optimizer).__name__} are unknown",
            argument="rule",
            remedy="train with torch.optim.SGD, or declare rule='heavy_ball', 'nesterov' or 'decoupled' for a custom "
            "optimizer that implements this rule (adaptive optimizers, such as Adam, implement none of them)",
        )
        self._groups = groups
        # Declared settings are tested by the training, so they need not match those of the groups.
        self._read = [
            *(["nesterov"] if rule is None else []),
            *(["momentum", "dampening", "maximize"] if momentum is None else []),
            *(["weight_decay"] if weight_decay is None else []),
        ]
        self._found = self._settings()
        unlike = [name for name in ("dampening", "maximize") if name in self._found and any(self._found[name])]
        unlike += ["nesterov in some groups"] if len(set(self._found.get("nesterov", [0]))) > 1 else []
        require(
            not unlike,
            f"the optimizer has {' and '.join(unlike)}, for which no charge law is available",
            argument="optimizer",
            value=unlike,
            remedy="train without these settings, or declare the momentum of an equivalent heavy-ball optimizer",
        )
        self.declared: dict[str, Any] = {
            "optimizer": rule or ("nesterov" if self._found["nesterov"][0] else "heavy_ball"),
            "momentum": self._declared("momentum") if momentum is None else momentum,
            "weight_decay": self._declared("weight_decay") if weight_decay is None else weight_decay,
        }
        # The rate may be zero during a warm-up, but schedules store the initial rate.
        rates = [float(group.get("initial_lr", 0) or group["lr"]) for group in groups.values()]
        self._rates = [rate / rates[0] if rates[0] else 1.0 for rate in rates]
        require(
            all(rate > 0 for rate in self._rates),
            "some parameter groups of the optimizer have learning rate zero, but others do not",
            argument="optimizer",
            value=rates,
            remedy="pass only symmetries of parameters with a positive learning rate",
        )
        if len(set(self._rates)) > 1:
            self.declared["rates"] = dict(zip(groups, self._rates, strict=True))
        self.learning_rate()

    def learning_rate(self) -> float:
        """Return the learning rate of the next step in the group of the first parameter.

        Raises:
            InputError: If the settings, or the ratios of the learning rates of groups, have changed since the first
                step.
        """
        found = self._settings()
        changed = [name for name, values in found.items() if values != self._found[name]]
        rates = [float(group["lr"]) for group in self._groups.values()]
        expected = zip(rates, self._rates, strict=True)
        if not all(math.isclose(rate, rates[0] * ratio, rel_tol=_EQUAL) for rate, ratio in expected):
            changed.append("the ratio of learning rates between groups")
        require(
            not changed,
            f"{', '.join(changed)} of the optimizer changed while the charges were tracked",
            argument="optimizer",
            value=changed,
            remedy="keep these settings constant, for example with cycle_momentum=False, or call watch_charges with a "
            "new optimizer",
        )
        return rates[0]

    def _settings(self) -> dict[str, list[float]]:
        return {name: [float(group.get(name) or 0) for group in self._groups.values()] for name in self._read}

    def _declared(self, name: str) -> float | dict[str, float]:
        """Return one number if it is the same for all groups; otherwise one number for each parameter."""
        values = self._found[name]
        return values[0] if len(set(values)) == 1 else dict(zip(self._groups, values, strict=True))
