"""Charges of attention layers along gradient flow, and the symmetries of their programs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.flows import GradientFlow, Solver, gradient_flow, track
from dynascope.studies.symmetry.attention_symmetry.layers import PAIRS, VARIANTS, attention, charge_matrices, layer
from dynascope.studies.symmetry.attention_symmetry.optimizers import OPTIMIZERS
from dynascope.studies.symmetry.formulas import Formula, relative_distance
from dynascope.symmetry import SymmetryStructure, equivariance, find_symmetries
from dynascope.tasks import Task
from dynascope.theory.symmetry import (
    attention_defect,
    attention_generators,
    biased_attention_defect,
    biased_charge_parts,
)

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.symmetry.attention_symmetry.study import AttentionSymmetry

__all__ = ["Experiment"]

_FIXED = "constant"  # the layer whose defects are measured
_READ = 8  # samples with which programs are analysed
_TOLERANCE = 1e-10  # relative tolerance of the solver
_CHANGED = 1e-9  # change of a charge, relative to the squared norm of the weights, above the error of the solver


class _Run(NamedTuple):
    """Measurements of one layer at the recorded times.

    Attributes:
        loss: The loss, shape (time,).
        charges: The charge matrices of both pairs, shape (time, pair, width, width).
        moved: The distance from the initial weights, relative to their norm, shape (time,).
    """

    loss: np.ndarray
    charges: np.ndarray
    moved: np.ndarray


class _Parts(NamedTuple):
    """Largest changes of charges at each time, relative to the squared norm of the weights, shape (time,).

    Attributes:
        outside: Of the charges outside the span of the biases.
        inside: Of all other charges.
    """

    outside: np.ndarray
    inside: np.ndarray


class Experiment:
    """Trains the layers of a study by gradient flow, analyses their programs, and rotates their weights.

    Args:
        study: The study that defines the layers and the data.
    """

    def __init__(self, study: AttentionSymmetry):
        self.study = study

    def trained(self) -> Values:
        """Train all layers, record their charges, and count their symmetries."""
        runs = {name: self._run(name) for name in track(self.study.biases, "layers")}
        changes = {name: (run.charges - run.charges[0]) / self._squared_norm for name, run in runs.items()}
        parts = {name: self._parts(name, each) for name, each in changes.items()}
        axes = ("layer", "pair")
        return {
            **({"defects": (("pair", "entry"), self._measured_defects())} if _FIXED in self.study.biases else {}),
            "conserved_charges": (axes, [[_conserved(each[:, k]) for k in (0, 1)] for each in changes.values()]),
            "program_symmetries": (axes, [self._program_symmetries(name) for name in runs]),
            "outside": (("layer", "time"), [each.outside for each in parts.values()]),
            "inside": (("layer", "time"), [each.inside for each in parts.values()]),
            "moved": (("layer", "time"), [run.moved for run in runs.values()]),
            "loss": (("layer", "time"), [run.loss for run in runs.values()]),
            "distance": (("optimizer", "step"), [self._distance(name) for name in self.study.optimizers]),
        }

    def exact(self) -> Values:
        """The number of conserved charges of each pair, and the defects due to constant biases."""
        counts = [[self._generators(name)] * len(PAIRS) for name in self.study.biases]
        values: dict[str, Any] = dict.fromkeys(("conserved_charges", "program_symmetries"), (("layer", "pair"), counts))
        if _FIXED in self.study.biases:
            values["defects"] = (("pair", "entry"), self._predicted_defects())
        return values

    @property
    def times(self) -> np.ndarray:
        """The recorded times, denser early in training, when the weights change fast."""
        return self.study.duration * np.linspace(0.0, 1.0, self.study.times) ** 2

    @property
    def with_charges(self) -> list[str]:
        """The layers with conserved charges."""
        return [name for name in self.study.biases if self._generators(name)]

    @property
    def with_broken_charges(self) -> list[str]:
        """The layers whose biases break at least some of the symmetries."""
        most = attention_generators(self.study.width).symmetric
        return [name for name in self.study.biases if self._generators(name) < most]

    def _run(self, name: str) -> _Run:
        initial, task = self._layer(name), self._task(name)
        run = gradient_flow(
            task,
            initial,
            GradientFlow(
                duration=self.study.duration,
                solver=Solver(relative_tolerance=_TOLERANCE),
                save=self.times,
                statistics={
                    "charges": (charge_matrices, ["pair", "row", "column"]),
                    "moved": (jax.tree_util.Partial(relative_distance, initial.weights), []),
                },
            ),
        )
        return _Run(*(run[key].to_numpy() for key in _Run._fields))

    def _parts(self, name: str, changes: np.ndarray) -> _Parts:
        """Largest changes of the charges outside the span of the biases, and of the other charges, at each time."""
        layer = self._layer(name)
        found = []
        for k, kind in enumerate(("query", "value")):
            biases = layer.constants[f"{kind}_biases"]
            # A learned bias compensates for one constant bias, so only differences break the symmetry.
            span = biases - biases[:1] if VARIANTS[name].learned else biases
            found.append([biased_charge_parts(each, span) for each in changes[:, k]])
        outside, inside = (
            np.max([[np.abs(part(each)).max() for each in pair] for pair in found], axis=0)
            for part in (lambda each: each.outside, lambda each: each.inside + each.mixed)
        )
        return _Parts(outside, inside)

    def _program_symmetries(self, name: str) -> list[int]:
        """Number of charges of each pair that analysing the program finds."""
        found = self._structure(name)
        charges = [*found.symmetries, *(each.charge for each in found.affine)]
        return [sum(each.size for each in charges if f"['{key}']" in each.paths) for key in ("keys", "outputs")]

    def _structure(self, name: str) -> SymmetryStructure:
        layer, inputs = self._layer(name), self._task(name).inputs[:_READ]
        return find_symmetries(lambda p, x: layer.apply(p, x, **layer.constants), layer.weights, inputs)

    def _measured_defects(self) -> np.ndarray:
        """The derivative of the loss along the mixing of units, from the gradients of the weights."""
        trees = self._layer(_FIXED).weights, self._gradients[0]
        scores = [tree[name].T for tree in trees for name in ("queries", "keys")]
        mixed = [part for tree in trees for part in (tree["values"].T, tree["outputs"])]
        return np.stack([np.ravel(attention_defect(*each)) for each in (scores, mixed)])

    def _predicted_defects(self) -> np.ndarray:
        """The same from the biases and the gradients of the loss with respect to them."""
        biases, slopes = self._layer(_FIXED).constants, self._gradients[1]
        names = "query_biases", "value_biases"
        return np.stack([np.ravel(biased_attention_defect(biases[name][0], slopes[name][0])) for name in names])

    @functools.cached_property
    def _gradients(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Gradients with respect to the initial weights and the constant biases."""
        layer = self._layer(_FIXED)
        slope = jax.grad(functools.partial(_loss, self._task(_FIXED)), argnums=(0, 1))
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, slope(layer.weights, layer.constants))

    def _distance(self, name: str) -> np.ndarray:
        """Distance between a rotated run and the run from rotated weights, for rotations of queries and keys."""
        layer = self._layer("no biases")
        loss = functools.partial(_loss, self._task("no biases"), constants=layer.constants)
        (pair,) = [each for each in self._structure("no biases").symmetries if "['keys']" in each.paths]
        optimizer, study = OPTIMIZERS[name].transformation, self.study
        return equivariance(optimizer, loss, layer.weights, pair, steps=study.steps, seed=study.seed).distance

    def _generators(self, name: str) -> int:
        """The number of symmetric generators of one pair."""
        variant, draws = VARIANTS[name], len(self._layer(name).constants["query_biases"])
        return attention_generators(
            self.study.width, 0 if variant.draws == "none" else draws, learned=variant.learned
        ).symmetric

    def _layer(self, name: str) -> Formula:
        return layer(VARIANTS[name], self.study.width, self.study.draws, self.study.seed)

    def _task(self, name: str) -> Task:
        """Targets of a random layer without biases, once for each draw of the biases."""
        study, draw = self.study, np.random.default_rng([self.study.seed, 2])
        teacher = layer(VARIANTS["no biases"], study.width, 1, study.seed + 1)
        inputs = draw.normal(size=(study.samples, study.tokens * study.width))
        draws = len(self._layer(name).constants["query_biases"])
        return Task(inputs, np.tile(np.asarray(teacher(inputs)), draws) / np.sqrt(draws))

    @functools.cached_property
    def _squared_norm(self) -> float:
        return float(np.sum(self._layer("no biases").flat ** 2))


def _loss(task: Task, weights: Mapping[str, Any], constants: Mapping[str, Any]) -> Any:
    return jnp.sum((attention(weights, task.inputs, **constants) - task.targets) ** 2) / (2 * len(task.inputs))


def _conserved(changes: np.ndarray) -> int:
    """Count the linear combinations of the entries of a symmetric matrix that do not change, shape (time, n, n)."""
    rows, columns = np.triu_indices(changes.shape[1])
    entries = changes[:, rows, columns]
    singular = np.linalg.svd(entries, compute_uv=False) / np.sqrt(len(entries))
    return int(np.sum(singular < _CHANGED))
