"""Training of the networks at every relative scale, and the scores of their filters."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from dynascope.comparison.interval import student_half
from dynascope.flows import track
from dynascope.probes.filters import filter_scores
from dynascope.studies.regimes.filters.network import filter_network
from dynascope.studies.regimes.filters.patches import RotatedPatches, rotated_patches, windows
from dynascope.tasks import Labelled
from dynascope.training import Descent, descend

if TYPE_CHECKING:
    from dynascope.studies.regimes.filters.study import Filters

__all__ = ["QUANTILES", "SCORES", "SIDE", "Experiment"]

SIDE = 32  # of a patch
SCORES = ("gabor", "concentration", "roughness")
QUANTILES = np.linspace(0, 1, 17)
_NAMES = ("upright", "one quarter turn", "half a turn", "three quarter turns")
_STATISTICS = {"filters": (lambda network: network.filters, ("pixel", "filter"))}
_CELL, _RUN = ("relative_scale", "epoch"), ("relative_scale", "seed", "epoch")


class Experiment:
    """The training runs of one study.

    Attributes:
        study: The study, whose fields are the settings.
    """

    def __init__(self, study: Filters):
        self.study = study

    def trained(self) -> dict[str, Any]:
        """Train all networks, and score their filters during training."""
        runs = [self.run(scale) for scale in track(self.study.relative_scales, "relative scales")]
        found = {name: np.array([each[name] for each in runs]) for name in runs[0]}
        quantiles = found.pop("gabor_quantiles")
        ends = {name: found[name][:, :, -1] for name in ("test_accuracy", "movement", *SCORES)}
        scale = ("relative_scale",)
        return {
            **{name: (_RUN, values) for name, values in found.items()},
            **{f"mean_{name}": (_CELL, values.mean(axis=1)) for name, values in found.items()},
            **{f"final_{name}": (scale, values.mean(axis=1)) for name, values in ends.items()},
            **{f"{name}_half_width": (scale, list(map(_half, values))) for name, values in ends.items()},
            "gabor_quantiles": (("relative_scale", "quantile"), quantiles),
            "initial_loss_ratio": (("relative_scale", "seed"), found["loss"][:, :, 0] / found["loss"][:1, :, 0]),
        }

    def run(self, relative_scale: float) -> dict[str, np.ndarray]:
        """Train the networks of one relative scale; each quantity has shape (seeds, epochs), but `gabor_quantiles`."""
        study = self.study
        train, test = self.tasks
        options = {"kernel": study.kernel, "filters": study.filters, "width": study.width}
        networks = [
            filter_network(relative_scale, positions=train.inputs.shape[1], seed=seed, **options)
            for seed in range(study.seed, study.seed + study.seeds)
        ]
        # Single precision is faster, and all measured differences are much larger than its rounding errors.
        with jax.enable_x64(False):
            record = descend(
                train,
                networks,
                Descent(
                    learning_rate=float(np.float32(self.learning_rate(relative_scale))),
                    epochs=study.epochs,
                    loss="cross_entropy",
                    batches=study.batch_size,
                    save=self.epochs,
                    test=test,
                    statistics=_STATISTICS,
                ),
                seed=study.seed,
            )
        curves = {name: record[name].to_numpy().astype(float) for name in ("loss", "test_loss", "test_accuracy")}
        filters = record["filters"].to_numpy().astype(float)  # (seeds, epochs, pixels, filters)
        moved = np.linalg.norm(filters - filters[:, :1], axis=(2, 3)) / np.linalg.norm(filters[:, :1], axis=(2, 3))
        rows = filters.swapaxes(2, 3).reshape(-1, study.kernel, study.kernel)
        scores = {name: each.reshape(*moved.shape, -1) for name, each in filter_scores(rows)._asdict().items()}
        return {
            **curves,
            "movement": moved,
            **{name: each.mean(axis=2) for name, each in scores.items()},
            "gabor_quantiles": np.quantile(scores["gabor"][:, -1], QUANTILES),
        }

    def learning_rate(self, relative_scale: float) -> float:
        """The learning rate at a relative scale α, which is 3/(α² + 1 + α⁻²) of that at α = 1.

        The contributions of the first, the hidden and the last layer to the NTK are proportional to α², 1 and α⁻². With
        equal contributions at α = 1, this rate keeps the trace of the NTK times the learning rate fixed.
        """
        square = relative_scale**2
        return 3 * self.study.learning_rate / (square + 1 + 1 / square)

    @functools.cached_property
    def epochs(self) -> list[int]:
        """Recorded epochs: the first and the last one, and a few between them."""
        last = self.study.epochs
        return sorted({0, round(last / 8), round(last / 3), last})

    @functools.cached_property
    def patches(self) -> RotatedPatches:
        """The training and test patches."""
        study = self.study
        return rotated_patches(study.data, study.patches, study.test_patches, side=SIDE, seed=study.seed)

    @functools.cached_property
    def tasks(self) -> tuple[Labelled, Labelled]:
        """The windows of the training and of the test patches, with the number of quarter turns as labels."""
        found, chosen = self.patches, (self.study.kernel, self.study.stride)
        return (
            Labelled(windows(found.inputs, *chosen), found.labels, _NAMES),
            Labelled(windows(found.test_inputs, *chosen), found.test_labels, _NAMES),
        )


def _half(values: np.ndarray) -> float:
    """Half-width of the Student confidence interval of a mean."""
    return student_half(float(np.var(values, ddof=1)), len(values))
