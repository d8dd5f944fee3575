"""What the parameter groups of an optimiser of PyTorch say of its steps, and what its user says instead."""
# pyright: reportMissingImports=false

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from dynascope.symmetry.step_rules import Rule
from dynascope.validation import require

__all__ = ["OptimizerSettings"]

_EQUAL = 1e-9  # of ratios of rates, which schedules keep up to rounding


class OptimizerSettings:
    """The rule of an optimiser and its numbers, as declared for the laws of charges.

    Attributes:
        declared: Rule, rates, momentum and weight decay, as `training.charge_statistics` takes them.

    Args:
        optimizer: The optimiser.
        groups: The group of each parameter of the symmetries, by its path.
        rule: As its user says, or None for what the groups of `torch.optim.SGD` say.
        momentum: β as its user says, or None.
        weight_decay: λ as its user says, or None.

    Raises:
        InputError: There are no groups, they differ in their rule, or nothing says which rule there is.
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
            "the optimizer trains no parameter of the symmetries" if not groups else "the optimizer has no rate lr",
            argument="optimizer",
            value=type(optimizer).__name__,
            remedy="give the one that trains the parameters of this model",
        )
        require(
            rule is not None or isinstance(optimizer, torch.optim.SGD),
            f"{type(optimizer).__name__} has no law of charges that is known",
            argument="rule",
            remedy="give the rule that you believe it to follow: heavy_ball, nesterov or decoupled",
        )
        self._groups = groups
        # What the user declares is held against the training, and not against the groups.
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
            f"the optimizer has {' and '.join(unlike)}, for which there is no law here",
            argument="optimizer",
            value=unlike,
            remedy="train without, or declare the momentum of the heavy ball that you believe it to be",
        )
        self.declared: dict[str, Any] = {
            "optimizer": rule or ("nesterov" if self._found["nesterov"][0] else "heavy_ball"),
            "momentum": self._declared("momentum") if momentum is None else momentum,
            "weight_decay": self._declared("weight_decay") if weight_decay is None else weight_decay,
        }
        # A schedule that warms up may be at zero, and tells what it started from.
        rates = [float(group.get("initial_lr", 0) or group["lr"]) for group in groups.values()]
        self._rates = [rate / rates[0] if rates[0] else 1.0 for rate in rates]
        require(
            all(rate > 0 for rate in self._rates),
            "groups of the optimizer are at rate zero, and others are not",
            argument="optimizer",
            value=rates,
            remedy="watch the symmetries of parameters that move",
        )
        if len(set(self._rates)) > 1:
            self.declared["rates"] = dict(zip(groups, self._rates, strict=True))
        self.learning_rate()

    def learning_rate(self) -> float:
        """The rate of the next step, of the group of the first parameter.

        Raises:
            InputError: The settings, or the ratios of the groups' rates, are not those of the first step.
        """
        found = self._settings()
        changed = [name for name, values in found.items() if values != self._found[name]]
        rates = [float(group["lr"]) for group in self._groups.values()]
        told = zip(rates, self._rates, strict=True)
        if not all(math.isclose(rate, rates[0] * ratio, rel_tol=_EQUAL) for rate, ratio in told):
            changed.append("the ratio of the rates of groups")
        require(
            not changed,
            f"{', '.join(changed)} of the optimizer changed while its charges were watched",
            argument="optimizer",
            value=changed,
            remedy="keep it, as by cycle_momentum=False of a schedule, or watch anew from an optimizer's first step",
        )
        return rates[0]

    def _settings(self) -> dict[str, list[float]]:
        return {name: [float(group.get(name) or 0) for group in self._groups.values()] for name in self._read}

    def _declared(self, name: str) -> float | dict[str, float]:
        """The number that all groups have, or that of each parameter."""
        values = self._found[name]
        return values[0] if len(set(values)) == 1 else dict(zip(self._groups, values, strict=True))
