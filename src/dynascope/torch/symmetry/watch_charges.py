"""Track the charges of a PyTorch training loop and the predictions of their laws, for `symmetry.audit`."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

from dynascope.results import make_record
from dynascope.symmetry import Charge
from dynascope.symmetry.step_rules import Rule
from dynascope.symmetry.symmetry_arguments import parameter_paths, require_symmetries
from dynascope.theory.sgd import Momentum
from dynascope.torch.symmetry.charge_law import ChargeLaw
from dynascope.torch.symmetry.optimizer_settings import OptimizerSettings
from dynascope.torch.symmetry.watched_tensors import WatchedTensors
from dynascope.validation import require, shown
from dynascope.validation.bounded_scalars import NonNegativeFloat, PositiveInt

__all__ = ["WatchedCharges", "watch_charges"]

_CONVENTION = "the loss is that of the training loop and is not recorded; step = number of optimizer steps"

_ALIKE = 1e-6  # relative difference below which gradients count as multiples of each other


def watch_charges(
    model: torch.nn.Module | torch.Tensor | Mapping[Any, Any] | Sequence[Any],
    optimizer: torch.optim.Optimizer,
    symmetries: Sequence[Charge],
    *,
    rule: Rule | None = None,
    momentum: Momentum | None = None,
    weight_decay: NonNegativeFloat | None = None,
    gradient_roundings: PositiveInt = 128,
    causes: bool = False,
    grad_scaler: Any = None,
    every: PositiveInt = 1,
) -> WatchedCharges:
    """Track the charges of a PyTorch training loop and the predictions of their laws, for `symmetry.audit`.

    Hooks on `optimizer.step()` read the weights before and after each step, and the learning rates of the parameter
    groups. The laws of `training.charge_statistics` are evaluated from these values, with the settings of
    `torch.optim.SGD` or with settings that you declare. A residual above the bound proves that the training loop
    deviates from these settings.

    Steps that a `GradScaler` skips are not counted. There may be several backward passes per step. The gradient of a
    parameter without `.grad` is taken as zero. Learning rates may follow any schedule that keeps the ratios between
    groups constant. If groups have different rates, charges are weighted as with `rates` of
    `training.charge_statistics`, relative to the rate of the first parameter in the order of names.

    Memory: one copy on the CPU of the parameters in the symmetries, two copies of their gradients with `causes`, and
    four numbers for each charge and recorded step. `causes` adds seven numbers for each part of a charge and 19 for
    each parameter. Cost: for a multilayer perceptron with two million weights and batches of 256, a step takes about an
    eighth longer, and twice as long with `causes`.

    Args:
        model: The `torch.nn.Module` to train, or the tree of tensors that was passed to `find_symmetries`.
        optimizer: The optimiser of the weights; if it uses momentum, it must not have made a step yet.
        symmetries: All or some of the symmetries from `find_symmetries`. The bound for translations uses the largest
            step of any weight; for weights outside the symmetries, the largest step is estimated from their gradients.
        rule: The update rule, as `optimizer` of `training.charge_statistics`. Required for all optimisers except
            `torch.optim.SGD`. The audit tests exactly this rule for any optimiser. Adaptive optimisers such as Adam and
            AdamW follow none of the rules, so an audit of such a run reports violated laws.
        momentum: β; None to read it from the parameter groups.
        weight_decay: λ; None to read it from the parameter groups.
        gradient_roundings: Number of terms in the longest sum of the backward pass, for the bound. Multiply the number
            by 2¹⁶ if autocast multiplies in bfloat16, and by 2¹³ for float16 or TF32. The bound then hides all but
            large violations, so audit in full precision if possible.
        causes: Whether to record the statistics from which `symmetry.audit` diagnoses violations. The gradient is
            recorded before any clipping by value or per tensor. Factors common to all parameters, as in clipping by the
            global norm, are included. Not available for data-parallel models, because their gradients are averaged
            later.
        grad_scaler: The `torch.amp.GradScaler` that multiplies the loss; needed only with `causes`.
        every: Number of steps between recorded steps. The laws use all steps, and the last step is always recorded.

    Returns:
        The tracked charges. `record()` returns their record; `close()`, or leaving a `with` block, removes all hooks.

    Raises:
        InputError: If the optimiser has no known law, or evaluates the loss several times per step; if momentum, or ρλ
            for decoupled decay, differs within a symmetry; if the symmetries do not belong to the model; or if weights
            are neither float32 nor float64. If settings change later, `step()` raises the error.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, for the laws in continuous time.

    Example:
        >>> from dynascope.symmetry import audit, find_symmetries
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        >>> inputs, symmetries = torch.eye(2), find_symmetries(model, None, torch.eye(2)).symmetries
        >>> with watch_charges(model, optimizer, symmetries) as watched:
        ...     for _ in range(5):
        ...         optimizer.zero_grad()
        ...         model(inputs).square().mean().backward()
        ...         optimizer.step()
        >>> audit(watched.record(), symmetries).clean
        True
    """
    require(
        isinstance(optimizer, torch.optim.Optimizer) and not isinstance(optimizer, torch.optim.LBFGS),
        f"optimizer is of type {type(optimizer).__name__}, whose charge laws are unknown",
        argument="optimizer",
        value=type(optimizer).__name__,
        remedy="give a torch.optim optimizer that evaluates one gradient per step (any except LBFGS)",
    )
    require_symmetries(symmetries, remedy="give at least one symmetry from symmetry.find_symmetries")
    require(
        not (causes and isinstance(getattr(model, "_orig_mod", model), torch.nn.parallel.DistributedDataParallel)),
        "causes is True, but model is trained in parallel, so its gradients are averaged after the backward pass",
        argument="model",
        value=type(model).__name__,
        remedy="omit causes",
    )
    require(
        grad_scaler is None or isinstance(grad_scaler, torch.amp.GradScaler),
        f"grad_scaler is {shown(grad_scaler)}",
        argument="grad_scaler",
        value=type(grad_scaler).__name__,
        remedy="give the torch.amp.GradScaler of the training loop, or omit grad_scaler",
    )
    tensors = WatchedTensors(model, symmetries)
    group_of = {id(each): group for group in optimizer.param_groups for each in group["params"]}
    groups = {path: group_of[id(each)] for path, each in tensors.watched.items() if id(each) in group_of}
    settings = OptimizerSettings(optimizer, groups, rule, momentum, weight_decay)
    declared = {**settings.declared, "gradient_roundings": gradient_roundings, "causes": causes}
    law = ChargeLaw(symmetries, declared, tensors.arrays(tensors.watched))
    require(
        law.largest_momentum == 0 or not any(optimizer.state.get(each) for each in tensors.watched.values()),
        "the optimizer has already taken steps, so its initial momentum is unknown",
        argument="optimizer",
        value=type(optimizer).__name__,
        remedy="call watch_charges before the first step of the optimizer",
    )
    return WatchedCharges(tensors, optimizer, settings, law, grad_scaler, every)


class WatchedCharges:
    """Charges along a training loop, tracked by `watch_charges`; a context manager that removes its hooks on exit."""

    def __init__(
        self,
        tensors: WatchedTensors,
        optimizer: torch.optim.Optimizer,
        settings: OptimizerSettings,
        law: ChargeLaw,
        grad_scaler: Any,
        every: int,
    ):
        self._tensors, self._optimizer, self._settings, self._law = tensors, optimizer, settings, law
        self._scaler, self._every = grad_scaler, every
        self._before = {name: each.detach().to("cpu", copy=True) for name, each in tensors.watched.items()}
        self._raw: dict[str, torch.Tensor] = {}
        self._buffer = 0.0  # Bound on the entries of the momentum buffers of other parameters.
        # If the step of a subclass calls that of its base class, the hooks of both run, but only the outer step counts.
        self._depth = 0
        self._bits: dict[str, int] = {}
        # Whether weights were changed between steps since the last recorded one.
        self._changed = dict.fromkeys(parameter_paths(law.symmetries), False)
        self._rows = [(0, self._values())]
        self._changed_unseen: bool | None = None  # known once the hooks are removed
        self._hooks = [
            optimizer.register_step_pre_hook(self._before_step),
            optimizer.register_step_post_hook(self._after_step),
        ]
        for name, each in tensors.watched.items() if law.declared["causes"] else ():
            if each.requires_grad and each.is_leaf:
                self._hooks.append(each.register_hook(self._bits_hook(name)))
                self._hooks.append(each.register_post_accumulate_grad_hook(self._gradient_hook(name)))

    def record(self) -> xr.Dataset:
        """Return the record of the steps so far, the variables of `training.charge_statistics` over (step, charge).

        With `causes`, the record also contains variables over (step, charge, part) and (step, layer). Step 0 is the
        initialisation. The attribute `changed_without_step` is true if the weights changed although the optimiser made
        no step, for example because another optimiser trains the model.
        """
        rows = self._rows
        if rows[-1][0] < self._law.steps:
            rows = [*rows, (self._law.steps, self._values())]
        variables = {
            name: (("step", *self._dimensions(name)), np.stack([values[name] for _, values in rows]))
            for name in rows[0][1]
        }
        coordinates: dict[str, Any] = {"step": [step for step, _ in rows]}
        for dimensions, values in variables.values():
            for dimension, length in zip(dimensions[1:], values.shape[1:], strict=True):
                coordinates[dimension] = np.arange(length) + (dimension == "layer")
        unseen = self._weights_changed_unseen() if self._changed_unseen is None else self._changed_unseen
        attributes = {"convention": _CONVENTION, "changed_without_step": unseen, **self._law.declared}
        return make_record(variables, coordinates, attributes=attributes)

    def values(self) -> dict[str, tuple[list[str], np.ndarray]]:
        """Return the dimensions and values of all variables after the latest step, as a recorded step."""
        found = {name: (list(self._dimensions(name)), values) for name, values in self._values().items()}
        self._forget_changes()
        return found

    @property
    def symmetries(self) -> Sequence[Charge]:
        """The symmetries whose charges are tracked."""
        return self._law.symmetries

    @property
    def settings(self) -> dict[str, Any]:
        """The declared settings, as attributes of the record."""
        return dict(self._law.declared)

    def close(self) -> None:
        """Remove all hooks, after which steps are no longer tracked."""
        if self._changed_unseen is None:
            self._changed_unseen = self._weights_changed_unseen()
        for each in self._hooks:
            each.remove()
        self._hooks, self._raw, self._bits = [], {}, {}

    def __enter__(self) -> WatchedCharges:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _dimensions(self, name: str) -> Sequence[str]:
        return self._law.dimensions.get(name, ("layer",))

    def _weights_changed_unseen(self) -> bool:
        """Whether the optimiser has made no step, but the weights have changed."""
        watched = self._tensors.watched
        return self._law.steps == 0 and any(
            not torch.equal(each, watched[name].detach().to("cpu")) for name, each in self._before.items()
        )

    def _gradient_hook(self, name: str) -> Callable[[torch.Tensor], None]:
        def keep(parameter: torch.Tensor) -> None:
            assert parameter.grad is not None
            self._raw[name] = parameter.grad.detach().clone()

        return keep

    def _bits_hook(self, name: str) -> Callable[[torch.Tensor], None]:
        """Return a hook that measures the significant bits of the gradient in each backward pass."""

        def measure(gradient: torch.Tensor) -> None:
            self._bits[name] = max(self._bits.get(name, 0), _significant_bits(gradient))

        return measure

    def _values(self) -> dict[str, np.ndarray]:
        values = self._law.values()
        if self._law.declared["causes"]:
            values["changed_between"] = np.array(list(self._changed.values()))
            bits = zip(self._changed, values["gradient_bits"], strict=True)
            values["gradient_bits"] = np.array([self._bits.get(name, number) for name, number in bits])
        return values

    def _before_step(self, *_: Any) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        for name, each in self._tensors.watched.items():
            left, now = self._before[name], each.detach()
            self._changed[name] |= not torch.equal(left, now.to("cpu"))
            left.copy_(now)

    def _after_step(self, *_: Any) -> None:
        self._depth -= 1
        if self._depth:
            return
        arrays, watched = self._tensors.arrays, self._tensors.watched
        learning_rate = self._settings.learning_rate()
        self._buffer = self._law.largest_momentum * self._buffer + self._largest_gradient()
        self._law.advance(
            arrays(self._before),
            arrays(watched),
            gradient=arrays(self._gradients()) if self._law.needs_gradient else None,
            buffers=self._buffers(),
            learning_rate=learning_rate,
            unseen=learning_rate * self._buffer,
        )
        for name, each in watched.items():
            self._before[name].copy_(each.detach())  # the expected weights before the next step
        if self._law.steps % self._every == 0:
            self._rows.append((self._law.steps, self._values()))
            self._forget_changes()

    def _forget_changes(self) -> None:
        """Start to collect the changes between steps, and the bits of gradients, for the next recorded step."""
        self._changed, self._bits = dict.fromkeys(self._changed, False), {}

    def _gradients(self) -> dict[str, torch.Tensor]:
        """Return the gradients summed over all backward passes since the last step, with `causes` before clipping.

        A common factor, as in clipping by the global norm, preserves every law and is treated as part of the gradient.
        """
        scale = 1.0 if self._scaler is None else self._scaler.get_scale()
        used = {
            name: torch.zeros_like(each) if each.grad is None else each.grad.detach().to_dense()
            for name, each in self._tensors.watched.items()
        }
        raw = {
            name: self._raw.pop(name).to_dense() / scale if name in self._raw else each for name, each in used.items()
        }
        pairs = [(used[name], each) for name, each in raw.items()]
        squares = sum(float(before.square().sum()) for _, before in pairs)
        factor = sum(float((now * before).sum()) for now, before in pairs) / squares if squares else 1.0
        alike = all(
            float((now - factor * before).abs().max()) <= _ALIKE * float(now.abs().max()) for now, before in pairs
        )
        return used if alike else raw

    def _largest_gradient(self) -> float:
        """Return the largest absolute entry of the gradients of all parameters outside the symmetries."""
        watched = {id(each) for each in self._tensors.watched.values()}
        parameters = (each for group in self._optimizer.param_groups for each in group["params"])
        gradients = [each.grad for each in parameters if id(each) not in watched and each.grad is not None]
        sizes = [each.detach().to_dense().abs().amax().to("cpu", torch.float64) for each in gradients if each.numel()]
        return float(torch.stack(sizes).amax()) if sizes else 0.0

    def _buffers(self) -> Any:
        """Return the momentum buffers after the step, if a law needs them and all parameters have one; else None."""
        if self._settings.declared["optimizer"] != "nesterov":
            return None
        states = {name: self._optimizer.state.get(each, {}) for name, each in self._tensors.watched.items()}
        buffers = {name: state.get("momentum_buffer") for name, state in states.items()}
        known = all(isinstance(each, torch.Tensor) for each in buffers.values())
        return self._tensors.arrays(buffers) if known else None


def _significant_bits(gradient: torch.Tensor) -> int:
    """Return the significant bits of the entries: 8 for bfloat16, 11 for float16, otherwise those of the type."""
    values = gradient.detach().to_dense()
    for kind, bits in ((torch.bfloat16, 8), (torch.float16, 11)):
        if values.any() and torch.equal(values.to(kind).to(values.dtype), values):
            return bits
    return 24 if values.dtype == torch.float32 else 53
