"""Depth reduces the width needed to compose k group elements from exponential in k to constant."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from dynascope.comparison import report_claims
from dynascope.flows import track
from dynascope.groups import Group, find_group
from dynascope.networks.exact_composition import (
    ARCHITECTURES,
    measured_composition,
    random_composition,
    recurrent_composition,
    tree_composition,
    two_layer_composition,
)
from dynascope.studies import Reference, Study, Values, curve_tolerance, parameter
from dynascope.studies.staircases.composition_depth import page
from dynascope.studies.staircases.composition_depth.claims import WidthSearch, growth_claims
from dynascope.studies.staircases.smallest_width import smallest_width
from dynascope.tasks import Task, group_composition
from dynascope.theory import papers
from dynascope.theory.groups import construction_width
from dynascope.training.optimizers import annealed
from dynascope.validation.bounded import PositiveFloat, PositiveInt


class CompositionDepth(Study):
    """Tests the width and depth of constructed and trained networks that compose k elements of a group.

    For each k, the checks test three properties of the constructed networks: the width, the depth (number of
    consecutive nonlinear layers) and the exactness, which is 1 − (largest error over all sequences)/(largest target).
    The constructed widths are sufficient but may not be minimal.

    The claims, which decide the verdict, are about trained networks. `trained_width` is the smallest width, found by
    doubling, at which training reaches the target loss (0 if it never does). `trained_loss` is the loss at this width.
    In two-layer networks, the trained width must at least double with each further element. In recurrent networks and
    trees, it may at most double from k = 2 to the longest sequences, because the search cannot resolve smaller changes.
    The smallest sufficient width is between half the trained width and the trained width, so only an interval for its
    growth is known. If training fails at a width that suffices by construction, the growth is unknown. Trained networks
    may need fewer neurons than the construction, because the number of inputs is finite: on a commutative group, a
    width polynomial in k suffices.
    """

    group: str = parameter("D3", 'Name of the group, such as "D3"; elements are encoded as centred one-hot vectors.')
    longest: Annotated[int, Ge(3)] = parameter(4, "Largest number k of composed elements.")
    smallest_width: PositiveInt = parameter(
        8, "First width of the search; it is doubled until training reaches the target loss."
    )
    largest_width: PositiveInt = parameter(256, "Largest width of the search.", least="smallest_width")
    target_loss: PositiveFloat = parameter(0.01, "Target loss, relative to the loss of the zero function.")
    steps: PositiveInt = parameter(
        1000, "Number of steps of Adam, with a cosine learning-rate schedule that decays to zero."
    )
    learning_rate: PositiveFloat = parameter(0.02, "Initial learning rate.")
    seeds: PositiveInt = parameter(4, "Number of initialisations per width; the best one is used.")

    reference = Reference.of(
        papers.COMPOSITION,
        "A two-layer network composes k group elements exactly with a width exponential in k. A recurrent network does "
        "so with constant width in k − 1 steps, and a tree with constant width in ⌈log₂ k⌉ levels.",
    )
    title = "Depth instead of width in group composition"
    question = "How many neurons does a network need to compose k elements of a group, in one layer or in several?"
    figures, meaning = page.figures, page.meaning
    theory = "polarised representations"
    task = "composition in {group}"
    notes = (
        "Sequences of 2 to {longest} elements of the group {group}, and their products.",
        "Each element is encoded as a one-hot vector minus the mean.",
    )
    trains = "two-layer, recurrent and tree"
    flow = "descent"
    recorded_fields = ("learning_rate",)
    axes = ("length", "architecture")
    labelled = {"length": "_lengths", "architecture": ARCHITECTURES}
    along = "length"
    equation = r"\left( x_{g_1}, \ldots, x_{g_k} \right) \mapsto x_{g_1 g_2 \cdots g_k}"
    minutes = 0.9
    names = {
        "trained_loss": ("loss at the smallest sufficient width, relative to that of the zero function", "1"),
        "trained_width": ("smallest width required for training", "1"),
        "width": ("hidden neurons", "1"),
        "depth": ("consecutive nonlinear layers", "1"),
        "exactness": ("one minus the ratio of the largest error to the largest target", "1"),
        "length": ("number of composed elements", "1"),
    }
    tolerance = curve_tolerance(
        width=(0.0, "the number of neurons is an exact count"),
        depth=(0.0, "the number of layers is an exact count"),
        exactness=(1e-10, "the networks are exact up to rounding errors, which accumulate over neurons"),
    )
    checks = tuple(tolerance)
    deciding_claims = ARCHITECTURES
    tiny = {"group": "C2", "longest": 3, "smallest_width": 4, "steps": 200, "target_loss": 0.1, "seeds": 2}

    def trained(self) -> Values:
        """Measure the constructed networks, and train others from random weights."""
        recurrent = recurrent_composition(self._group, self._encoding)
        tree, table = tree_composition(self._group, self._encoding), []
        for k in track(self._lengths, "sequence lengths"):
            task = group_composition(self._group, sequence_length=k)
            layer = two_layer_composition(self._group, self._encoding, k)
            built = zip(ARCHITECTURES, (layer, recurrent, tree), strict=True)
            table.append([measured_composition(task, network) | self._train(name, k, task) for name, network in built])
        found = {name: [[entry[name] for entry in row] for row in table] for name in table[0][0]}
        widths, sufficient = np.array(found["trained_width"], float), np.array(self.exact()["width"])
        return {**found, **report_claims(growth_claims(self.part(WidthSearch), widths, sufficient))}

    def exact(self) -> Values:
        """The widths and depths of the constructions by representation theory and polarisation."""
        pair, *_ = widths = [construction_width(self._group, self._encoding, k) for k in self._lengths]
        return {
            "width": [(width, pair, pair) for width in widths],
            # ⌈log₂ k⌉ is the number of binary digits of k − 1.
            "depth": [(1, k - 1, (k - 1).bit_length()) for k in self._lengths],
            "exactness": np.ones((len(widths), len(ARCHITECTURES))),
        }

    def check(self) -> None:
        """Check that the group exists."""
        find_group(self.group)

    def about(self) -> Values:
        """The task, the networks and the optimiser."""
        return {**super().about(), "optimizer": "adam"}

    @functools.cached_property
    def _group(self) -> Group:
        return find_group(self.group)

    @property
    def _encoding(self) -> np.ndarray:
        """One-hot minus the mean, as in `group_composition`; its Fourier transform is invertible everywhere."""
        return np.eye(self._group.order)[0] - 1 / self._group.order

    @property
    def _lengths(self) -> list[int]:
        return list(range(2, self.longest + 1))

    def _train(self, name: str, k: int, task: Task) -> dict[str, Any]:
        """The smallest width that reaches the target loss, or 0 if none does, and its relative loss."""
        zero, n = task.target_power / 2, task.output_dimension
        width, loss = smallest_width(
            task,
            lambda width: [random_composition(name, n, k, width, seed) for seed in range(self.seeds)],
            self.target_loss * zero,
            smallest=self.smallest_width,
            largest=self.largest_width,
            steps=self.steps,
            learning_rate=self.learning_rate,
            # Power activations make the loss steep in places; clipping the gradient norm keeps training finite.
            optimizer=annealed("adam", self.steps, largest_gradient=1.0),
        )
        return {"trained_width": width, "trained_loss": loss / zero}
