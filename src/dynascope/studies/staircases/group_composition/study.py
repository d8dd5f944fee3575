"""Two-layer networks learn to compose group elements one irreducible representation after the other."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import xarray as xr

from dynascope.flows import gradient_flow
from dynascope.groups import Group, Irrep, find_group, real_irreducible_representations
from dynascope.networks import TwoLayer
from dynascope.results import Staircase
from dynascope.studies import Reference, StaircaseStudy
from dynascope.studies.fields import checked, count, initial_scale, numbers, seed, text
from dynascope.studies.staircases.group_composition.paced_encoding import paced_encoding, undisturbed_irreps
from dynascope.studies.staircases.group_composition.page import FIGURES, MEANING
from dynascope.studies.staircases.loss_parts import loss_parts
from dynascope.tasks.algebra import group_expectation
from dynascope.tasks.algebra.group_composition import group_composition
from dynascope.theory import papers
from dynascope.theory.groups import composition_staircase
from dynascope.theory.groups.irrep_neurons import irrep_projection, neurons_by_share, shares_of_irreps

# Gradient flow comes to rest on a plateau slowly with no more neurons than the construction needs.
_SURPLUS = 2


class GroupComposition(StaircaseStudy):
    """Levels, times and slopes of the loss staircase of a two-layer network with the activation zᵏ on all sequences.

    The encoding of the elements holds a few irreps, each with one amplitude: all singular values of its Fourier
    coefficient. Neurons start near one irrep each, more of them where it is larger, and the flow is the
    homogeneity-normalised one, in which each neuron has the rate norm^(1−k). The observed record also holds the part of
    the loss in each irrep, which shows the order.
    """

    group: str = text("D7", "Name of the group: C11, C5xC5, D7, S4, A5, Q8, Oh, …")
    sequence_length: int = count(2, "Number k of elements that are composed.", least=2, most=20)
    irreps: list[str] = checked(
        [],
        "Names of the irreps in the encoding; none for up to three of different dimension where there are, chosen so "
        "that no irrep pushes the neurons of another while it is learned, unless the group has no two such.",
    )
    amplitudes: list[float] = numbers(
        [],
        "Amplitude of each irrep; none for those that make each irrep be learned 2.5 times as late as the one before, "
        "the first at log(1/scale).",
        fewest=0,
        different=False,
        above=0.0,
    )
    width: int | None = count(
        None,
        "Number of neurons; none for twice as many as the explicit construction needs (see "
        "`theory.groups.construction_width`), irreps of dimension one counted as of two. Each irrep takes a share, of "
        "no fewer than it has there.",
    )
    scale: float = initial_scale(1e-5, "Norm of the neurons at the start", most=0.01)
    seed: int = seed("Seed of the encoding and of the neurons.")

    reference = Reference.of(
        papers.COMPOSITION,
        "From small initialisation a two-layer network learns to compose the elements of a finite group one "
        "irreducible representation of the encoding after the other, in an order set by its Fourier coefficients, its "
        "dimension and the length of the sequence.",
    )
    question = "In which order does a network learn how the elements of a group combine?"
    figures = FIGURES
    meaning = MEANING
    minutes = 0.2
    names = {
        "irrep_loss": ("loss in the representation", "1"),
        "irrep": ("irreducible representation", "1"),
    }
    tiny = {"group": "D3", "width": 48}

    def check(self) -> None:
        """Irreps that the group has, an amplitude for each, and neurons for each."""
        names, trivial = [irrep.name for irrep in self._offered], f"the group {self.group} has the trivial irrep alone"
        self.require(len(names) > 0, "group", "choose a larger one", problem=trivial)
        different = set(self.irreps) <= set(names) and len(set(self.irreps)) == len(self.irreps)
        self.require(different, "irreps", f"choose different ones from {', '.join(names)}")
        each = not self.amplitudes or len(self.amplitudes) == len(self._irreps)
        self.require(each, "amplitudes", "give a positive number for each irrep, or none at all")
        irreps = self._irreps, self.sequence_length
        enough = np.all(self._shares >= shares_of_irreps(*irreps))
        remedy = f"choose at least {shares_of_irreps(*irreps, least=2).sum()}, with which networks are known, or none"
        self.require(self.width is None or enough, "width", remedy)

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train on the average over all sequences."""
        options = {"duration": 1.6 * float(self._staircase(scale).times[-1]), "save": 1000, "normalised": True}
        parts = [irrep_projection(self._group, each) for each in self._irreps]
        statistics = {"irrep_loss": (loss_parts(self._task, self._encoding, parts), ("irrep",))}
        record = gradient_flow(self._network, self._task, scale=scale, statistics=statistics, **options)
        return record.assign_coords(irrep=[irrep.name for irrep in self._irreps])

    def predict(self) -> xr.Dataset:
        """The largest utility of a neuron in each irrep, and the share of the encoding that the irrep holds."""
        grown = "times are known up to the growth of neurons by a factor of e²: many grow at once, once aligned"
        slopes = 0.01, "what the times leave out is the same at both scales, up to the overlap of drops"
        network, times = f"two-layer, activation power-{self.sequence_length}", (2 / math.log(1 / self.scale), grown)
        return self.stated(self._staircase(self.scale), network, jump_time=times, slope=slopes)

    def _staircase(self, scale: float) -> Staircase:
        steps = composition_staircase(self._group, self._encoding, self.sequence_length, scale=scale)
        # It does not know that every irrep has neurons here.
        return dataclasses.replace(steps, warnings=tuple(each for each in steps.warnings if "Gaussian" not in each))

    @functools.cached_property
    def _group(self) -> Group:
        return find_group(self.group)

    @functools.cached_property
    def _offered(self) -> list[Irrep]:
        """All irreps but the trivial one."""
        _, *others = real_irreducible_representations(self._group)
        return others

    @functools.cached_property
    def _irreps(self) -> list[Irrep]:
        """The irreps in the encoding, in the order in which they are to be learned."""
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
        # An irrep of dimension one needs as many as of two: half of the random neurons have the wrong sign for it.
        irreps = self._irreps, self.sequence_length
        width = _SURPLUS * int(shares_of_irreps(*irreps, least=2).sum()) if self.width is None else self.width
        return shares_of_irreps(*irreps, width=width, least=2)

    @functools.cached_property
    def _network(self) -> TwoLayer:
        n, k = self._group.order, self.sequence_length
        rows = neurons_by_share(self._group, self._encoding, k, self._shares, seed=self.seed)
        return TwoLayer(k * n, len(rows), n, activation=f"power-{k}").with_neurons(rows)
