"""Two-layer networks learn to compose group elements one irreducible representation at a time."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Annotated, Any

import numpy as np
import xarray as xr
from annotated_types import Interval

from dynascope.flows import GradientFlow, gradient_flow
from dynascope.groups import Group, Irrep, find_group, real_irreducible_representations
from dynascope.networks import TwoLayer
from dynascope.results import Staircase
from dynascope.studies import Reference, StaircaseStudy, parameter
from dynascope.studies.staircases.group_composition import page
from dynascope.studies.staircases.group_composition.paced_encoding import paced_encoding, undisturbed_irreps
from dynascope.studies.staircases.loss_parts import loss_parts
from dynascope.tasks.algebra import group_expectation
from dynascope.tasks.algebra.group_composition import group_composition
from dynascope.theory import papers
from dynascope.theory.groups import composition_staircase
from dynascope.theory.groups.irrep_neurons import irrep_projection, neurons_by_share, shares_of_irreps
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

# With the minimum number of neurons of the construction, gradient flow converges slowly to a plateau.
_SURPLUS = 2


class GroupComposition(StaircaseStudy):
    """Tests the predicted loss staircase of a two-layer network that learns to compose k elements of a group.

    The study compares predicted and observed plateau losses, jump times and slopes. The slopes measure how fast the
    jump times grow as the initial scale decreases. The network has the activation zᵏ and is trained on all sequences of
    k elements. The encoding of the elements contains a few irreducible representations (irreps). In the Fourier
    coefficient of each irrep, all singular values equal the amplitude of the irrep. Each neuron is initialised near one
    irrep, and irreps of larger dimension receive more neurons. The flow is homogeneity-normalised: a neuron with
    weights θ has the learning rate ‖θ‖^(1−k). The observed record also contains the loss in each irrep, which shows the
    order of learning.
    """

    group: str = parameter("D7", "Name of the group, such as C11, C5xC5, D7, S4, A5, Q8 or Oh.")
    sequence_length: Annotated[int, Interval(ge=2, le=20)] = parameter(2, "Number k of composed elements.")
    irreps: list[str] = parameter(
        [],
        "Names of the irreps in the encoding. The default is up to three irreps, of different dimensions if possible, "
        "chosen so that learning one irrep does not drive the neurons of another. If the group has no two such "
        "irreps, the default is its first two.",
        fewest=0,
        repeats=True,
    )
    amplitudes: list[PositiveFloat] = parameter(
        [],
        "Amplitude of each irrep. With the default amplitudes, the network learns the first irrep at "
        "t = log(1/scale), and each further irrep at 2.5 times the time of the previous one.",
        fewest=0,
        repeats=True,
    )
    width: PositiveInt | None = parameter(
        None,
        "Number of neurons; by default, twice the number in the explicit construction (see "
        "`theory.groups.construction_width`). For the default, an irrep of dimension one counts as an irrep of "
        "dimension two. Each irrep receives at least the number of neurons in the construction.",
    )
    scale: Annotated[float, Interval(gt=0, le=0.01)] = parameter(
        1e-5, "Initial norm of the neurons. The slopes are measured between this scale and 1e-4 times this scale."
    )
    seed: Seed = parameter(0, "Seed of the encoding and of the neurons.")

    reference = Reference.of(
        papers.COMPOSITION,
        "From small initialisation, a two-layer network learns to compose the elements of a finite group one "
        "irreducible representation of the encoding at a time. The order depends on the Fourier coefficients, the "
        "dimensions of the representations and the sequence length.",
    )
    title = "Group composition, one representation at a time"
    question = "In which order does a network learn the irreducible representations of a group?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"t_\rho = \frac{\log(1/\alpha)}{(k+1) \, U^*_\rho}, \quad E_\rho = \frac{c_\rho d_\rho}{n} \left\| "
        r"\hat{x}(\rho) \right\|^2"
    )
    minutes = 0.2
    names = {
        "irrep_loss": ("loss in the representation", "1"),
        "irrep": ("irreducible representation", "1"),
    }
    tiny = {"group": "D3", "width": 48}

    def check(self) -> None:
        """Check that the irreps exist and that each has an amplitude and enough neurons."""
        names, trivial = [irrep.name for irrep in self._offered], f"the group {self.group} has only the trivial irrep"
        self.require(len(names) > 0, "group", "choose a larger group", problem=trivial)
        different = set(self.irreps) <= set(names) and len(set(self.irreps)) == len(self.irreps)
        self.require(different, "irreps", f"choose different irreps from {', '.join(names)}")
        each = not self.amplitudes or len(self.amplitudes) == len(self._irreps)
        self.require(each, "amplitudes", "pass one amplitude for each irrep, or no amplitudes")
        irreps = self._irreps, self.sequence_length
        enough = np.all(self._shares >= shares_of_irreps(*irreps))
        remedy = f"choose at least {shares_of_irreps(*irreps, least=2).sum()}, as in the construction, or None"
        self.require(self.width is None or enough, "width", remedy)

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train on the average loss over all sequences."""
        duration = 1.6 * float(self._staircase(scale).times[-1])
        parts = [irrep_projection(self._group, each) for each in self._irreps]
        statistics = {"irrep_loss": (loss_parts(self._task, self._encoding, parts), ("irrep",))}
        method = GradientFlow(duration=duration, normalised=True, save=1000, statistics=statistics)
        record = gradient_flow(self._task, self._network, method, scale=scale)
        return record.assign_coords(irrep=[irrep.name for irrep in self._irreps])

    def predicted(self) -> xr.Dataset:
        """Predict times from the largest utility in each irrep, and levels from the power of each irrep."""
        grown = "times are predicted to within two e-folds of growth, because many aligned neurons grow together"
        slopes = 0.01, "the neglected part of the times is the same at both scales, unless drops overlap"
        network, times = f"two-layer, activation power-{self.sequence_length}", (2 / math.log(1 / self.scale), grown)
        return self.predicted_record(self._staircase(self.scale), network, jump_time=times, slope=slopes)

    def _staircase(self, scale: float) -> Staircase:
        steps = composition_staircase(self._group, self._encoding, self.sequence_length, scale=scale)
        # The warning about Gaussian neurons does not apply, because every irrep has neurons here.
        return dataclasses.replace(steps, warnings=tuple(each for each in steps.warnings if "Gaussian" not in each))

    @functools.cached_property
    def _group(self) -> Group:
        return find_group(self.group)

    @functools.cached_property
    def _offered(self) -> list[Irrep]:
        """All irreps except the trivial one."""
        _, *others = real_irreducible_representations(self._group)
        return others

    @functools.cached_property
    def _irreps(self) -> list[Irrep]:
        """The irreps in the encoding, in the intended order of learning."""
        names = {irrep.name: irrep for irrep in self._offered}
        usual = (self._group, self.sequence_length)
        return [names[name] for name in self.irreps] or undisturbed_irreps(*usual, scale=self.scale, seed=self.seed)

    @functools.cached_property
    def _encoding(self) -> np.ndarray:
        amplitudes = {"amplitudes": self.amplitudes, "seed": self.seed}
        return paced_encoding(self._group, self._irreps, self.sequence_length, **amplitudes)

    @functools.cached_property
    def _task(self) -> Any:
        if self.sequence_length == 2:
            return group_expectation.GroupComposition(self._group, self._encoding)
        return group_composition(self._group, self._encoding, sequence_length=self.sequence_length)

    @functools.cached_property
    def _shares(self) -> np.ndarray:
        """Number of neurons of each irrep, in the order of the group."""
        # An irrep of dimension one needs as many neurons as one of dimension two, since half have the wrong sign.
        irreps = self._irreps, self.sequence_length
        width = _SURPLUS * int(shares_of_irreps(*irreps, least=2).sum()) if self.width is None else self.width
        return shares_of_irreps(*irreps, width=width, least=2)

    @functools.cached_property
    def _network(self) -> TwoLayer:
        n, k = self._group.order, self.sequence_length
        rows = neurons_by_share(self._group, self._encoding, k, self._shares, seed=self.seed)
        return TwoLayer(k * n, len(rows), n, activation=f"power-{k}").with_neurons(rows)
