"""What the parameter groups of an optimiser of PyTorch say of its steps, and what its user says instead."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch

from dynascope.arguments import require, require_choice
from dynascope.errors import InputError

__all__ = ["OptimizerSettings", "Rule"]

Rule = Literal["heavy_ball", "nesterov", "decoupled"]
_RULES = ("heavy_ball", "nesterov", "decoupled")


class OptimizerSettings:
    """The rule of an optimiser and its numbers, as declared for the laws of charges.

    Attributes:
        declared: Rule, momentum and weight decay, as `flows.charge_statistics` takes them.

    Args:
        optimizer: The optimiser.
        groups: Those of its groups that hold parameters of symmetries.
        rule: As its user says, or None for what the groups of `torch.optim.SGD` say.
        momentum: β as its user says, or None.
        weight_decay: λ as its user says, or None.

    Raises:
        InputError: There are no groups, they differ, or nothing says which rule there is.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        groups: Sequence[Mapping[str, Any]],
        rule: Rule | None,
        momentum: float | None,
        weight_decay: float | None,
    ):
        require(
            bool(groups) and all("lr" in group for group in groups),
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
        if rule is not None:
            require_choice("rule", rule, _RULES)
        self._groups = groups
        # What the user declares is held against the training, and not against the groups.
        self._read = [
            *(["nesterov"] if rule is None else []),
            *(["momentum", "dampening", "maximize"] if momentum is None else []),
            *(["weight_decay"] if weight_decay is None else []),
        ]
        self._found = self._settings()
        unlike = [name for name in ("dampening", "maximize") if self._found.get(name)]
        require(
            not unlike,
            f"the optimizer has {' and '.join(unlike)}, for which there is no law here",
            argument="optimizer",
            value=unlike,
            remedy="train without, or declare the momentum of the heavy ball that you believe it to be",
        )
        self.declared: dict[str, Any] = {
            "optimizer": rule or ("nesterov" if self._found["nesterov"] else "heavy_ball"),
            "momentum": self._found["momentum"] if momentum is None else momentum,
            "weight_decay": self._found["weight_decay"] if weight_decay is None else weight_decay,
        }
        self.learning_rate()

    def learning_rate(self) -> float:
        """The rate of the next step.

        Raises:
            InputError: Groups differ, or the settings are not those of the first step.
        """
        found = self._settings()
        changed = [name for name, value in found.items() if value != self._found[name]]
        require(
            not changed,
            f"{', '.join(changed)} of the optimizer changed while its charges were watched",
            argument="optimizer",
            value=[found[name] for name in changed],
            remedy="keep it, as by cycle_momentum=False of a schedule, or watch anew from an optimizer's first step",
        )
        return self._unanimous("lr")

    def _settings(self) -> dict[str, float]:
        return {name: self._unanimous(name) for name in self._read}

    def _unanimous(self, name: str) -> float:
        values = sorted({float(group.get(name) or 0) for group in self._groups})
        if len(values) > 1:
            raise InputError(
                f"groups of the optimizer have {name} {' and '.join(f'{each:g}' for each in values)}, and so their "
                "weights laws of their own",
                argument="optimizer",
                value=values,
                remedy="watch symmetries of one group, declare what all have, or see theory.symmetry.predict_charges",
            )
        return values[0]
