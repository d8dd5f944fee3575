"""Depth spares width: composing k group elements in one layer, in k − 1 steps, or on ⌈log₂ k⌉ levels."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.groups import Group
    from dynascope.tasks import Task

__all__ = ["CompositionDepth"]

_ARCHITECTURES = ("two-layer", "recurrent", "tree")


@dataclasses.dataclass(frozen=True)
class CompositionDepth(Study):
    """Width and depth of networks that compose k = 2, 3, … elements of a group, written down and trained.

    Judged are the networks that are written down: for each k their width, their depth (nonlinear layers one after the
    other), and their exactness, 1 − (largest error over all nᵏ sequences) / (largest target). Their widths are
    sufficient. Beside them stands `trained_width`, the smallest width, by doubling, at which training reaches the
    target loss (0 where none does), and `trained_loss`, the loss there. It may be smaller, as the
    inputs are finitely many: on a commutative group a width polynomial in k suffices.

    Attributes:
        group: Name of the group, such as "D3"; its elements are encoded one-hot, less the mean.
        longest: Largest k.
        smallest_width: Width at which training starts to look; it is doubled until the target loss is reached.
        largest_width: Width at which training stops to look.
        target_loss: Loss to reach, over that of the zero function.
        steps: Steps of Adam, with a learning rate that falls to zero as a cosine.
        learning_rate: Learning rate at the start.
        seeds: Number of initialisations at each width, of which the best counts.
    """

    group: str = "D3"
    longest: int = 4
    smallest_width: int = 8
    largest_width: int = 256
    target_loss: float = 0.01
    steps: int = 1000
    learning_rate: float = 0.02
    seeds: int = 4

    name: ClassVar[str] = "composition-depth"
    reference: ClassVar[Reference] = Reference(
        paper="G. L. Marchetti, D. Kunin, A. Myers, F. Acosta, N. Miolane, Sequential Group Composition: A Window into "
        "the Mechanics of Deep Learning",
        arxiv="2602.03655",
        claim="A two-layer network that multiplies out the representations composes k group elements exactly at a "
        "width exponential in k, a recurrent network does so at constant width in k − 1 steps, and a tree at constant "
        "width on ⌈log₂ k⌉ levels.",
    )
    along: ClassVar = "length"
    minutes: ClassVar[float] = 1.5
    tolerance: ClassVar = curve_tolerance(
        width=(0.0, "the neurons are counted"),
        depth=(0.0, "the layers are counted"),
        exactness=(1e-10, "the networks are exact up to rounding, which adds up over neurons"),
    )
    tiny: ClassVar = {"group": "C2", "longest": 3, "smallest_width": 4, "steps": 200, "target_loss": 0.1, "seeds": 2}

    def observe(self) -> xr.Dataset:
        """Write the networks down and measure them; then train others."""
        from dynascope.record import make_record
        from dynascope.tasks.algebra.group_composition import group_composition

        table = []
        for k in self._lengths():
            task = group_composition(self._group(), sequence_length=k)
            built = self._constructed(k)
            table.append([_measure(built[name], task) | self._train(name, k, task) for name in _ARCHITECTURES])
        variables = {
            name: (("length", "architecture"), [[entry[name] for entry in row] for row in table])
            for name in table[0][0]
        }
        return make_record(variables, self._coordinates(), attributes=self._about())

    def predict(self) -> xr.Dataset:
        """The widths and depths that representation theory and polarisation give."""
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.groups import construction_width

        group, lengths = self._group(), self._lengths()
        pair, *_ = widths = [construction_width(group, _encoding(group), k) for k in lengths]
        # ⌈log₂ k⌉ is the number of binary digits of k − 1.
        depths = [(1, k - 1, (k - 1).bit_length()) for k in lengths]
        return make_record(
            {
                "width": (("length", "architecture"), [(width, pair, pair) for width in widths]),
                "depth": (("length", "architecture"), depths),
                "exactness": (("length", "architecture"), np.ones((len(lengths), 3))),
            },
            self._coordinates(),
            attributes={"theory": "polarised representations", "reference": self.reference.paper, **self._about()},
        )

    def _coordinates(self) -> dict[str, Any]:
        return {"length": self._lengths(), "architecture": _ARCHITECTURES}

    def _about(self) -> dict[str, Any]:
        return {
            "task": f"composition in {self.group}",
            "description": [
                f"Sequences of 2 to {self.longest} elements of the group {self.group}, and their products.",
                "An element is encoded one-hot, less the mean.",
            ],
            "network": "two-layer, recurrent and tree",
            "scale": 1.0,
        }

    def _group(self) -> Group:
        from dynascope.groups import find_group

        return find_group(self.group)

    def _lengths(self) -> list[int]:
        from dynascope.arguments import require

        require(
            self.longest >= 3,
            f"longest is {self.longest}",
            argument="longest",
            value=self.longest,
            remedy="choose three or more, so that there are two lengths to compare",
        )
        return list(range(2, self.longest + 1))

    def _constructed(self, k: int) -> dict[str, Any]:
        from dynascope.networks.constructions import recurrent_composition, tree_composition, two_layer_composition

        group = self._group()
        encoding = _encoding(group)
        return {
            "two-layer": two_layer_composition(group, encoding, k),
            "recurrent": recurrent_composition(group, encoding),
            "tree": tree_composition(group, encoding),
        }

    def _train(self, name: str, k: int, task: Task) -> dict[str, Any]:
        """The smallest width that reaches the target loss, 0 if none does, and the loss over that of zero there."""
        from dynascope.flows import descend

        zero, loss, width = task.target_power / 2, float("inf"), self._first_width()
        while width <= self.largest_width:
            record = descend(
                [_random(name, task, k, width, seed) for seed in range(self.seeds)],
                task,
                steps=self.steps,
                learning_rate=self.learning_rate,
                optimizer=_annealed_adam(self.steps),
                record_steps=[0, self.steps],
            )
            loss = float(record["loss"].isel(step=-1).min()) / zero
            if loss <= self.target_loss:
                return {"trained_width": width, "trained_loss": loss}
            width *= 2
        return {"trained_width": 0, "trained_loss": loss}

    def _first_width(self) -> int:
        from dynascope.arguments import require, require_positive

        require_positive(smallest_width=self.smallest_width, target_loss=self.target_loss, seeds=self.seeds)
        require(
            self.largest_width >= self.smallest_width,
            f"largest_width is {self.largest_width}",
            argument="largest_width",
            value=self.largest_width,
            remedy=f"choose at least the smallest width, {self.smallest_width}",
        )
        return self.smallest_width


def _encoding(group: Group) -> np.ndarray:
    """One-hot, less the mean: what `group_composition` uses, with an invertible transform everywhere."""
    import numpy as np

    return np.eye(group.order)[0] - 1 / group.order


def _measure(network: Any, task: Task) -> dict[str, Any]:
    import jax
    import numpy as np

    with jax.enable_x64(True):
        error = np.asarray(network(task.inputs)) - task.targets
        lines = jax.make_jaxpr(network)(task.inputs).eqns
    return {
        "loss": float(np.sum(error**2)) / (2 * task.samples),
        # The last weights have a row for each hidden neuron.
        "width": len(jax.tree.leaves(network)[-1]),
        # Every layer raises its neurons to a power once, and nothing else does.
        "depth": sum(line.primitive.name in ("integer_pow", "square") for line in lines),
        "exactness": 1 - float(np.abs(error).max() / np.abs(task.targets).max()),
    }


def _random(name: str, task: Task, k: int, width: int, seed: int) -> Any:
    from dynascope.networks import TwoLayer
    from dynascope.networks.recurrent import Recurrent
    from dynascope.networks.tree import Tree

    n = task.output_dimension
    if name == "two-layer":
        return TwoLayer(k * n, width, n, activation=f"power-{k}", seed=seed)
    return Recurrent(n, width, n, seed=seed) if name == "recurrent" else Tree(n, width, seed=seed)


@functools.cache
def _annealed_adam(steps: int) -> Any:
    import optax

    def annealed_adam(learning_rate: Any) -> optax.GradientTransformation:
        # Powers make steep places, where a gradient of bounded norm keeps training finite.
        return optax.chain(
            optax.clip_by_global_norm(1.0),
            optax.adam(optax.cosine_decay_schedule(1.0, steps)),
            optax.scale(learning_rate),
        )

    return annealed_adam
