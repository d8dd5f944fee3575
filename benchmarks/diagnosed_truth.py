"""Independent references for the truth of the runs in `diagnosed_runs.py`, without measurements of the library."""
# pyright: reportMissingImports=false

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from class_geometry import ClassGeometry, class_geometry
from diagnosed_runs import Run
from diagnosed_training import Training
from torch import nn

__all__ = ["Truth", "truth_of"]

KERNEL_EXAMPLES = 24
LAZY, RICH = 0.02, 0.1  # distances between NTKs
DIVERGED = 4.0  # loss relative to the initial loss
FALLEN, REMAINING = 0.1, 0.2  # NC1 relative to the untrained network
SIMPLEX = 0.25  # largest deviation of a cosine of class means from −1/(C − 1); about 0.5 without training


class Truth(NamedTuple):
    """The verified truth of a run.

    Attributes:
        number: A number that shows whether the run has its condition.
        meaning: What the number is.
        holds: Whether the number confirms the truth of the run by construction.
    """

    number: float
    meaning: str
    holds: bool


def truth_of(run: Run) -> Truth:
    """Train without a recorder, and verify that the run has its condition, or does not have it."""
    trained = _Trained(run)
    numbers = {
        "lazy": trained.kernel_distance,
        "rich": trained.kernel_distance,
        "unstable": trained.growth,
        "dead units": trained.dead_share,
        "collapsed": trained.collapse,
        "clipping": trained.uneven_steps,
        "weight decay": trained.matrices_without_decay,
        "tied weights": trained.copies,
        "label noise": trained.label_noise,
        "memorising": trained.flipped_fit,
    }
    number, meaning, is_present, is_absent = numbers[run.condition]()
    return Truth(number, meaning, is_present if run.present else is_absent)


class _Trained:
    """A run after training, with its losses and some of its weights on the way."""

    def __init__(self, run: Run):
        self.run, self.training = run, run.training()
        self.initial = copy.deepcopy(self.training.model)
        self.losses: list[float] = []
        self.norms: list[torch.Tensor] = []
        self.kept: list[tuple[float, dict[str, torch.Tensor]]] = []
        clip = self.training.clip

        def clip_and_compare(model: nn.Module) -> None:
            before = [each.grad.norm() for each in model.parameters()]  # type: ignore[union-attr]
            clip(model)
            after = [each.grad.norm() for each in model.parameters()]  # type: ignore[union-attr]
            self.norms.append(torch.stack(after) / torch.stack(before).clamp(min=1e-12))

        self.training.clip = clip_and_compare if run.condition == "clipping" else clip
        run.train(self.training, self._observe)
        self.model = self.training.model.eval()

    def _observe(self, step: int, loss: torch.Tensor) -> None:
        self.losses.append(float(loss))
        regime = self.run.condition in ("lazy", "rich")
        if regime and (not self.kept or self.losses[-1] < 0.98 * self.kept[-1][0]):
            weights = {name: each.detach().clone() for name, each in self.training.model.named_parameters()}
            self.kept.append((self.losses[-1], weights))

    def kernel_distance(self) -> tuple[float, str, bool, bool]:
        """Compute S between the exact NTKs at the start and when 90 % of the decrease of the loss is over."""
        least = min(self.losses)
        goal = least + 0.1 * (self.losses[0] - least)
        weights = next(each for loss, each in self.kept if loss <= goal)
        start = _kernel(self.initial, dict(self.initial.named_parameters()), self.training)
        moved = _kernel(self.initial, weights, self.training)
        value = 1 - float((start * moved).sum() / (start.norm() * moved.norm()))
        meaning = f"distance between NTKs; the loss fell from {self.losses[0]:.3g} to {self.losses[-1]:.3g}"
        lazy, rich = value <= LAZY, value >= RICH
        return value, meaning, *((lazy, rich) if self.run.condition == "lazy" else (rich, lazy))

    def growth(self) -> tuple[float, str, bool, bool]:
        """Compute the largest loss relative to the initial one."""
        losses = torch.tensor(self.losses)
        growth = float(losses.max() / losses[0]) if losses.isfinite().all() else float("inf")
        fell = bool(losses[-1] < 0.7 * losses[0])
        rate = self.training.optimizer.param_groups[0]["lr"]
        meaning = f"largest relative to initial loss; learning rate {rate:.3g}, last loss {self.losses[-1]:.3g}"
        return growth, meaning, growth > DIVERGED, growth < 1.5 and fell

    def dead_share(self) -> tuple[float, str, bool, bool]:
        """Compute the largest share of units of one layer that no example activates."""
        shares: list[float] = []

        def observe(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: object) -> None:
            active = (inputs[0] > 0).transpose(0, 1).flatten(1).any(dim=1)
            shares.append(1 - float(active.float().mean()))

        hooks = [each.register_forward_hook(observe) for each in self.model.modules() if isinstance(each, nn.ReLU)]
        self._outputs()
        for each in hooks:
            each.remove()
        return max(shares), "largest share of dead units in a layer", max(shares) > 0.3, max(shares) < 0.15

    def collapse(self) -> tuple[float, str, bool, bool]:
        """Compare NC1 with its value before training, and require a simplex, nearest class means and no errors."""
        before, after = (self._geometry(each) for each in (self.initial.eval(), self.model))
        fall = after.within / before.within
        accuracy = self._accuracy(self._outputs())
        meaning = (
            f"NC1 relative to the untrained network ({after.within:.2g} and {before.within:.2g}); cosines of class "
            f"means deviate by {after.deviation:.2g}, nearest means by {after.disagreement:.2g}; "
            f"accuracy {accuracy:.3f}"
        )
        simplex = after.deviation < SIMPLEX and after.disagreement == 0
        return fall, meaning, fall < FALLEN and simplex and accuracy == 1, fall > REMAINING and accuracy < 1

    def _geometry(self, model: nn.Module) -> ClassGeometry:
        features: list[torch.Tensor] = []
        readout = [each for each in model.modules() if isinstance(each, nn.Linear)][-1]
        hook = readout.register_forward_hook(lambda module, inputs, output: features.append(inputs[0].detach()))
        with torch.no_grad():
            predicted = model(self.training.inputs).argmax(dim=-1)
        hook.remove()
        return class_geometry(features[0].numpy(), self.training.targets.numpy(), predicted.numpy())

    def uneven_steps(self) -> tuple[float, str, bool, bool]:
        """Compute the share of steps in which clipping scaled tensors by different factors."""
        factors = torch.stack(self.norms)
        factors = factors[:, (factors > 0).all(dim=0)]
        uneven = float((factors.amax(dim=1) > 1.001 * factors.amin(dim=1)).float().mean())
        active = float((factors.amin(dim=1) < 0.999).float().mean())
        meaning = f"share of steps with unequal clipping; {active:.2f} of the steps are clipped"
        return uneven, meaning, uneven > 0.5, uneven == 0 and active > 0.5

    def matrices_without_decay(self) -> tuple[float, str, bool, bool]:
        """Count weight matrices without weight decay."""
        matrices = [
            group["weight_decay"] for group in self.training.optimizer.param_groups for each in group["params"]
            if each.ndim > 1
        ]  # fmt: skip
        count = sum(each == 0 for each in matrices)
        return count, f"of {len(matrices)} weight matrices without decay", count == 1, count == 0

    def copies(self) -> tuple[float, str, bool, bool]:
        """Count pairs of distinct matrices with equal initial weights."""
        matrices = [each for each in self.initial.parameters() if each.ndim > 1]
        pairs = [torch.equal(one, other) for k, one in enumerate(matrices) for other in matrices[:k]]
        now = [each for each in self.model.parameters() if each.ndim > 1]
        end = [torch.equal(one, other) for k, one in enumerate(now) for other in now[:k]]
        meaning = f"pairs of equal matrices initially, and {sum(end)} at the end"
        return sum(pairs), meaning, sum(pairs) == 1 and not sum(end), sum(pairs) == 0

    def label_noise(self) -> tuple[float, str, bool, bool]:
        """Compute the share of flipped labels, and check that the network predicts the true ones."""
        flipped = self.training.flipped
        share = float(flipped.float().mean())
        predicted = self._outputs().argmax(dim=-1)
        right = float((predicted == self.training.true_targets).float().mean())
        fitted = float((predicted == self.training.targets)[flipped].float().mean()) if share else 0.0
        meaning = f"share of flipped labels; {right:.2f} of the true labels and {fitted:.2f} of the flipped ones fitted"
        return share, meaning, share > 0.25 and right > 0.8 and fitted < 0.3, share == 0 and right > 0.8

    def flipped_fit(self) -> tuple[float, str, bool, bool]:
        """Compute the share of flipped labels that the network predicts."""
        wrong = self.training.targets != self.training.true_targets
        agrees = self._outputs().argmax(dim=-1) == self.training.targets
        fitted, clean = float(agrees[wrong].float().mean()), float(agrees[~wrong].float().mean())
        meaning = f"share of the flipped labels fitted; {clean:.2f} of the others"
        return fitted, meaning, fitted > 0.8, fitted < 0.3

    def _outputs(self) -> torch.Tensor:
        with torch.no_grad():
            return self.model(self.training.inputs)

    def _accuracy(self, outputs: torch.Tensor) -> float:
        return float((outputs.argmax(dim=-1) == self.training.targets).float().mean())


def _kernel(model: nn.Module, weights: dict[str, torch.Tensor], training: Training) -> torch.Tensor:
    """Return the NTK of the first examples, averaged over outputs, of shape (m, m).

    The last position of language models stands for all positions.
    """
    inputs = training.inputs[:KERNEL_EXAMPLES]
    weights = {name: each.detach() for name, each in weights.items()}

    def outputs(given: dict[str, torch.Tensor]) -> torch.Tensor:
        found = torch.func.functional_call(model, given, (inputs,))
        return found[:, -1] if found.ndim == 3 else found

    found = torch.func.jacrev(outputs)(weights)
    parts = [each.flatten(2).transpose(0, 1) for each in found.values()]
    return sum((part @ part.transpose(1, 2)).mean(dim=0) for part in parts)  # type: ignore[return-value]
