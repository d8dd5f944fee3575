"""The preconditioner of Adam, and the curvature of the loss in its coordinates."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynascope.diagnosis.measurements.curvature import CURVATURE
from dynascope.diagnosis.probe import Probe
from dynascope.diagnosis.snapshot import Snapshot
from dynascope.torch.recorder.module_reader import ModuleReader

__all__ = ["is_adam", "preconditioned_probe", "preconditioned_scales"]

_KINDS = torch.optim.Adam, torch.optim.AdamW


def is_adam(optimizer: Any) -> bool:
    """Return whether an optimiser is Adam or AdamW; variants and subclasses may take other steps."""
    return type(optimizer) in _KINDS


def preconditioned_probe(reader: ModuleReader, optimizer: torch.optim.Optimizer) -> Probe:
    """Return the probe of the largest curvature of the loss in the coordinates in which Adam takes equal steps.

        λ_max(P^(−½) H P^(−½))

    H is the Hessian of the loss on the reference batch, and P is the preconditioner; see `preconditioned_scales`. The
    value is NaN before the first step, when Adam has no second moments.

    Args:
        reader: Reads the module, with a known loss.
        optimizer: An optimiser that satisfies `is_adam`.

    References:
        Cohen, Ghorbani, Krishnan, Agarwal, Medapati, Badura, Suo, Cardoze, Nado, Dahl, Gilmer, arXiv:2207.14484.

    Example:
        >>> model = torch.nn.Linear(2, 1)
        >>> pair = torch.randn(8, 2), torch.randn(8, 1)
        >>> reader = ModuleReader(
        ...     model,
        ...     pair,
        ...     layers=(),
        ...     selected=lambda name: True,
        ...     output=None,
        ...     kernel_examples=8,
        ...     memory=1e9,
        ...     criterion=torch.nn.MSELoss(),
        ... )
        >>> list(preconditioned_probe(reader, torch.optim.Adam(model.parameters())).names)
        ['preconditioned_sharpness']
    """

    def measure(snapshot: Snapshot) -> dict[str, tuple[list[str], float]]:
        if not any(state.get("step", 0) for state in optimizer.state.values()):
            return {"preconditioned_sharpness": ([], float("nan"))}
        found = reader.curvatures(1, scales=preconditioned_scales(optimizer))
        return {"preconditioned_sharpness": ([], float(found[0]))}

    return Probe(
        name="preconditioned_curvature",
        description="Largest eigenvalue of the Hessian of the loss in the coordinates of Adam's preconditioner.",
        needs=CURVATURE.needs,
        measure=measure,
        cost=CURVATURE.cost,
        names={"preconditioned_sharpness": ("largest preconditioned curvature of the loss", "1")},
        schedule=CURVATURE.schedule,
    )


def preconditioned_scales(optimizer: torch.optim.Optimizer) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return P^(−½) of Adam as a function of the parameter, for the largest learning rate η_max of all groups.

        P = (1 − β₁ᵗ)(√v̂ + ε) η_max/η,   v̂ = v/(1 − β₂ᵗ)

    v is the running mean of the squared gradients, or its largest value with `amsgrad`, after t steps. The first factor
    is the bias correction of the first moment, which tends to one. With this P, an update is −η_max P⁻¹ m for the
    running mean m of the gradients. The entries of parameters that the optimiser does not move are zero.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adam([weight], lr=0.1, betas=(0.0, 0.9))
        >>> weight.grad = torch.tensor([4.0, 9.0])
        >>> optimizer.step()
        >>> preconditioned_scales(optimizer)(weight)
        tensor([0.5000, 0.3333])
    """
    groups = {id(each): group for group in optimizer.param_groups for each in group["params"]}
    largest = max((float(group["lr"]) for group in optimizer.param_groups), default=0.0)

    def scales(parameter: torch.Tensor) -> torch.Tensor:
        group, state = groups.get(id(parameter)), optimizer.state.get(parameter, {})
        if group is None or not state or largest == 0:
            return torch.zeros_like(parameter)
        steps, (beta1, beta2) = float(state["step"]), map(float, group["betas"])
        moment = state["max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq"]
        root = (moment / (1 - beta2**steps)).sqrt() + group["eps"]
        return (float(group["lr"]) / largest / (1 - beta1**steps) / root).sqrt()

    return scales
