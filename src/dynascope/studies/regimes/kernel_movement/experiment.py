"""Training of deep networks at every depth and relative scale, with and without batch normalisation."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.errors import DivergenceError, DivergenceWarning
from dynascope.flows import track
from dynascope.studies.regimes.kernel_movement.measures import at_fractions, flat_weights, movement, tangent_kernel
from dynascope.studies.regimes.kernel_movement.networks import DeepReLU, Setting, deep_relu, layer_rates, setting
from dynascope.training import Descent, descend

if TYPE_CHECKING:
    from dynascope.studies.regimes.kernel_movement.study import KernelMovement

__all__ = ["FRACTIONS", "MEASURED", "NETWORKS", "Experiment"]

NETWORKS = ("plain", "batch norm")
MEASURED = ("kernel_distance", "hamming_distance", "parameter_distance", "test_loss", "time")
FRACTIONS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)  # of the initial loss
_RECORDS = 50
_LARGEST, _HALVINGS = 0.25, 10  # learning rate in units of 1/λ
_TWIN_STEPS = 100
_WEIGHTS = {"weights": (flat_weights, ("parameter",))}
_RUN = ("network", "depth", "relative_scale", "seed")
_LEVELS = (*_RUN, "loss_fraction")


class Experiment:
    """The training runs of one study.

    Attributes:
        study: The study, whose fields are the settings.
    """

    def __init__(self, study: KernelMovement):
        self.study = study

    def trained(self) -> dict[str, Any]:
        """Train all networks, and measure them at equal losses."""
        study = self.study
        cells = [(kind, depth) for kind in NETWORKS for depth in study.depths]
        found = [
            [self.runs(kind, depth, scale) for scale in study.relative_scales]
            for kind, depth in track(cells, "depths of both networks")
        ]
        shape = (len(NETWORKS), len(study.depths), len(study.relative_scales))

        def gathered(name: str) -> np.ndarray:
            values = np.array([[each[name] for each in row] for row in found])
            return values.reshape(shape + values.shape[2:])

        layers = np.array(
            [[each["layers"] for each in row] for row in found[len(study.depths) - 1 :: len(study.depths)]]
        )
        return {
            **{name: (_LEVELS, gathered(name)) for name in MEASURED},
            "loss": (_RUN, gathered("loss")),
            "initial_loss": (_RUN, gathered("initial_loss")),
            "learning_rate": (_RUN[:3], gathered("learning_rate")),
            "layer_hamming_distance": (("network", "relative_scale", "seed", "layer"), layers),
            "twin_ratio": (("network", "relative_scale"), self.twin_ratios()),
        }

    def runs(self, kind: str, depth: int, scale: float) -> dict[str, Any]:
        """Train one network per seed, and measure it each time the loss has fallen to a given fraction."""
        study = self.study
        draws = [self.drawn(seed, depth) for seed in range(study.seeds)]
        networks = [self.network(each, kind, scale) for each in draws]
        rate, record = self.descent(draws, networks)
        time, losses, paths = (record[name].to_numpy() for name in ("time", "loss", "weights"))
        rows: list[dict[str, Any]] = []
        for draw, network, loss, path in zip(draws, networks, losses, paths, strict=True):
            moved = movement(network, path, draw.task, draw.test, study.kernel_samples)
            measures = {**moved._asdict(), "time": time}
            layers = moved.layer_hamming_distance.T
            rows.append(
                {
                    **{name: at_fractions(loss, measures[name], FRACTIONS) for name in MEASURED},
                    "layers": [at_fractions(loss, each, [0.1])[0] for each in layers],
                    "loss": loss[-1],
                    "initial_loss": loss[0],
                }
            )
        return {**{name: [row[name] for row in rows] for name in rows[0]}, "learning_rate": rate}

    def descent(self, draws: list[Setting], networks: list[DeepReLU]) -> tuple[float, Any]:
        """Train by gradient descent at the largest rate at which no recorded loss exceeds the previous one.

        The tried rates are 2^(−k)/λ with k = 2, 3, …, where λ is the largest eigenvalue over seeds of the initial NTK,
        divided by the number of samples. λ is the initial curvature of the loss, apart from a term that is proportional
        to the residuals.
        """
        study = self.study
        curvature = max(_curvature(network, each) for network, each in zip(networks, draws, strict=True))
        for halving in range(_HALVINGS):
            rate = _LARGEST * 0.5**halving / curvature
            method = Descent(learning_rate=rate, steps=study.steps, save=_RECORDS, statistics=_WEIGHTS)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DivergenceWarning)
                try:
                    record = descend([each.task for each in draws], networks, method)
                except DivergenceError:
                    continue
            losses = record["loss"].to_numpy()
            if np.isfinite(losses).all() and (losses[:, 1:] <= (1 + 1e-6) * losses[:, :-1]).all():
                return rate, record
        raise DivergenceError(
            "the loss rises at every tried learning rate", time=0.0, remedy="choose a larger output scale"
        )

    def twin_ratios(self) -> list[list[float]]:
        """The loss of networks at the relative scale one and at matched rates of the layers, over that of a given one.

        Both are trained for the same number of steps from the weights of the first seed, at the smallest depth.
        """
        study = self.study
        draw = self.drawn(0, study.depths[0])
        ratios = []
        for kind in NETWORKS:
            row = []
            for scale in study.relative_scales:
                network, twin = (self.network(draw, kind, each) for each in (scale, 1.0))
                rate = 0.1 / _curvature(network, draw)
                matched = layer_rates(rate, scale, len(draw.weights), normalised=kind != "plain")
                ends = [
                    descend(draw.task, each, Descent(learning_rate=rates, steps=_TWIN_STEPS, save=[0, _TWIN_STEPS]))
                    for each, rates in ((twin, matched), (network, rate))
                ]
                row.append(float(ends[0]["loss"][-1] / ends[1]["loss"][-1]))
            ratios.append(row)
        return ratios

    def network(self, draw: Setting, kind: str, scale: float) -> DeepReLU:
        """Make the network of a seed at a relative scale."""
        return deep_relu(draw.weights, scale, self.study.output_scale, normalised=kind != "plain")

    @functools.cache  # noqa: B019 -- an experiment lives as long as its study
    def drawn(self, seed: int, depth: int) -> Setting:
        """The data and the initial weights of a seed."""
        study = self.study
        sizes = {name: getattr(study, name) for name in ("inputs", "samples", "test_samples", "width", "teacher_width")}
        return setting([study.seed, seed], depth=depth, **sizes)


def _curvature(network: DeepReLU, draw: Setting) -> float:
    kernel = np.asarray(tangent_kernel(network, draw.task.inputs, draw.task.samples))
    return float(np.linalg.eigvalsh(kernel)[-1] / draw.task.samples)
