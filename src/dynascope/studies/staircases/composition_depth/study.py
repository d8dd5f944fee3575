"""Depth spares width: composing k group elements in one layer, in k − 1 steps, or on ⌈log₂ k⌉ levels."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dynascope.comparison import Claim, report_claims
from dynascope.groups import Group, find_group
from dynascope.networks.exact_composition import (
    ARCHITECTURES,
    measured_composition,
    random_composition,
    recurrent_composition,
    tree_composition,
    two_layer_composition,
)
from dynascope.studies import Reference, Study, Values, curve_tolerance
from dynascope.studies.fields import count, positive, text
from dynascope.studies.staircases.composition_depth.page import FIGURES, MEANING
from dynascope.studies.staircases.smallest_width import smallest_width
from dynascope.tasks import Task, group_composition
from dynascope.theory import papers
from dynascope.theory.groups import construction_width
from dynascope.training.optimizers import annealed

# What is claimed of the growth of their widths, with so many further elements.
_CLAIMS = (
    (
        "In one layer the width that training needs at least doubles with each further element.",
        lambda further: {"least": 2.0**further},
    ),
    ("A recurrent network needs no more than twice the width for the longest sequences.", lambda _: {"most": 2.0}),
    ("A tree needs no more than twice the width for the longest sequences.", lambda _: {"most": 2.0}),
)


class CompositionDepth(Study):
    """Width and depth of networks that compose k = 2, 3, … elements of a group, written down and trained.

    Checked are the networks that are written down, which are exact by construction: for each k their width, their depth
    (nonlinear layers one after the other), and their exactness, 1 − (largest error over all nᵏ sequences) / (largest
    target). Their widths are sufficient.

    Judged are networks that are trained: `trained_width` is the smallest width, by doubling, at which training reaches
    the target loss (0 where none does), and `trained_loss` the loss there. From k = 2 to the longest sequences it must
    at least double with each further element in one layer, and grow to no more than twice itself, which is as fine as
    it is looked for, in recurrent networks and in trees. As the width that is needed lies between the one that was
    found and its half, its growth is known to an interval. Where none reaches the loss although a width was tried that
    suffices by construction, it is training that falls short, and nothing is known. It may be smaller than that of the
    networks that are written down, as the inputs are finitely many: on a commutative group a width polynomial in k
    suffices.
    """

    group: str = text("D3", 'Name of the group, such as "D3"; its elements are encoded one-hot, less the mean.')
    longest: int = count(4, "Largest k, the number of elements that are composed.", least=3)
    smallest_width: int = count(
        8, "Width at which training starts to look; it is doubled until the target loss is reached."
    )
    largest_width: int = count(256, "Width at which training stops to look.", least="smallest_width")
    target_loss: float = positive(0.01, "Loss to reach, over that of the zero function.")
    steps: int = count(1000, "Steps of Adam, with a learning rate that falls to zero as a cosine.")
    learning_rate: float = positive(0.02, "Learning rate at the start.")
    seeds: int = count(4, "Number of initialisations at each width, of which the best counts.")

    reference = Reference.of(
        papers.COMPOSITION,
        "A two-layer network that multiplies out the representations composes k group elements exactly at a "
        "width exponential in k, a recurrent network does so at constant width in k − 1 steps, and a tree at constant "
        "width on ⌈log₂ k⌉ levels.",
    )
    title = "What depth spares"
    question = "How many neurons does it take to combine k elements of a group, in one layer or in several?"
    figures = FIGURES
    meaning = MEANING
    theory = "polarised representations"
    task = "composition in {group}"
    told = (
        "Sequences of 2 to {longest} elements of the group {group}, and their products.",
        "An element is encoded one-hot, less the mean.",
    )
    trains = "two-layer, recurrent and tree"
    flow = "descent"
    says = ("learning_rate",)
    axes = ("length", "architecture")
    labelled = {"length": "_lengths", "architecture": ARCHITECTURES}
    along = "length"
    minutes = 0.9
    names = {
        "trained_loss": ("loss over that of zero, at the smallest width", "1"),
        "trained_width": ("smallest width that training needs", "1"),
        "width": ("hidden neurons", "1"),
        "depth": ("nonlinear layers in a row", "1"),
        "exactness": ("one less the largest error over the largest target", "1"),
        "length": ("number of elements composed", "1"),
    }
    tolerance = curve_tolerance(
        width=(0.0, "the neurons are counted"),
        depth=(0.0, "the layers are counted"),
        exactness=(1e-10, "the networks are exact up to rounding, which adds up over neurons"),
    )
    checks = tuple(tolerance)
    judged_claims = ARCHITECTURES
    tiny = {"group": "C2", "longest": 3, "smallest_width": 4, "steps": 200, "target_loss": 0.1, "seeds": 2}

    def trained(self) -> Values:
        """Write the networks down and measure them; then train others."""
        recurrent = recurrent_composition(self._group, self._encoding)
        tree, table = tree_composition(self._group, self._encoding), []
        for k in self._lengths:
            task = group_composition(self._group, sequence_length=k)
            layer = two_layer_composition(self._group, self._encoding, k)
            built = zip(ARCHITECTURES, (layer, recurrent, tree), strict=True)
            table.append([measured_composition(network, task) | self._train(name, k, task) for name, network in built])
        found = {name: [[entry[name] for entry in row] for row in table] for name in table[0][0]}
        return {**found, **report_claims(self._growths(np.array(found["trained_width"], float)))}

    def exact(self) -> Values:
        """The widths and depths that representation theory and polarisation give."""
        pair, *_ = widths = [construction_width(self._group, self._encoding, k) for k in self._lengths]
        return {
            "width": [(width, pair, pair) for width in widths],
            # ⌈log₂ k⌉ is the number of binary digits of k − 1.
            "depth": [(1, k - 1, (k - 1).bit_length()) for k in self._lengths],
            "exactness": np.ones((len(widths), len(ARCHITECTURES))),
        }

    def check(self) -> None:
        """A group of that name."""
        find_group(self.group)

    def about(self) -> Values:
        """The task and the networks, and how these are trained."""
        return {**super().about(), "optimizer": "adam"}

    @functools.cached_property
    def _group(self) -> Group:
        return find_group(self.group)

    @property
    def _encoding(self) -> np.ndarray:
        """One-hot, less the mean: what `group_composition` uses, with an invertible transform everywhere."""
        return np.eye(self._group.order)[0] - 1 / self._group.order

    @property
    def _lengths(self) -> list[int]:
        return list(range(2, self.longest + 1))

    def _growths(self, widths: np.ndarray) -> list[Claim]:
        """What is claimed of the widths that training needs, shape (lengths, architectures), from k = 2 to the last."""
        claims, suffice = [], self.exact()["width"]
        for place, (name, (statement, bound)) in enumerate(zip(ARCHITECTURES, _CLAIMS, strict=True)):
            ends = (self._needed(widths[end, place], suffice[end][place]) for end in (0, -1))
            (low, found, high), (least, value, most) = ends
            limits: dict[str, Any] = bound(self.longest - 2)
            claim = Claim(name, statement, value / found, least / high, most / low, **limits)
            # Where some width failed, the interval may still decide.
            failed = f"training reached the target loss at no width up to {self._widest:g}"
            known = claim.outcome != "undecided" or bool(np.isfinite([found, value]).all())
            claims.append(claim.if_known(known, failed))
        return claims

    def _needed(self, found: float, suffices: int) -> tuple[float, float, float]:
        """The least width that training may need, that which was found, and the most, where widths were doubled."""
        if found == 0:
            # Where a width that suffices was tried, it is the training that does not.
            return (1.0 if suffices <= self._widest else self._widest), np.inf, np.inf
        # Of less than the smallest nothing is known.
        return (found / 2 if found > self.smallest_width else 1.0), found, found

    @property
    def _widest(self) -> float:
        """The largest width that is tried, as they are doubled."""
        return self.smallest_width * 2.0 ** math.floor(math.log2(self.largest_width / self.smallest_width))

    def _train(self, name: str, k: int, task: Task) -> dict[str, Any]:
        """The smallest width that reaches the target loss, 0 if none does, and the loss over that of zero there."""
        zero, n = task.target_power / 2, task.output_dimension
        width, loss = smallest_width(
            lambda width: [random_composition(name, n, k, width, seed) for seed in range(self.seeds)],
            task,
            self.target_loss * zero,
            smallest=self.smallest_width,
            largest=self.largest_width,
            steps=self.steps,
            learning_rate=self.learning_rate,
            # Powers make steep places, where a gradient of bounded norm keeps training finite.
            optimizer=annealed("adam", self.steps, largest_gradient=1.0),
        )
        return {"trained_width": width, "trained_loss": loss / zero}
