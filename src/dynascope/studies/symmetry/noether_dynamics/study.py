"""Normalised layers: steps and decay balance in the norm of the weights, which adapts their learning rate."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dynascope.comparison import Claim
from dynascope.results import Comparison, name_all, numbers
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance
from dynascope.studies.fields import count, fraction, number, positive, seed
from dynascope.studies.symmetry.noether_dynamics.experiment import NormPaths, train_normalised, white_share
from dynascope.studies.symmetry.noether_dynamics.network import ScaleInvariantMLP
from dynascope.studies.symmetry.noether_dynamics.page import FIGURES, MEANING
from dynascope.tasks import Labelled, digits
from dynascope.theory import papers
from dynascope.theory.symmetry import (
    equilibration_steps,
    equilibrium_angular_step,
    equilibrium_squared_norm,
)

_HIDDEN_LAYERS, _RECORDS = 2, 200
_RUNS = ("full batch, no decay", "minibatches")
_CLAIMS = (
    "full batch: coherent",
    "minibatches: white",
    "minibatches: norm at equilibrium",
    "minibatches: angle of a step",
)
_APART = 1.25  # by which a closure may be off: the other one is off by (1 + β)/(1 − β)
_CLOSE = 0.05  # of what is claimed at equilibrium


class NoetherDynamics(ClaimsStudy):
    """Squared norms r = ‖W‖² of layers whose scale does not matter, under momentum, decay and batches.

    All layers of a tanh network on digits, some of whose labels are random, are normalised. Gradients are then
    orthogonal to the weights of a layer, so that steps can only lengthen it and decay alone shortens it. By how much
    steps do depends on whether gradients of neighbouring steps agree. Where they hardly change over 1/(1 − β) steps
    (coherent), (r²)' = −4λ/(1 − β) r² + 2η(1 + β)/(1 − β)³ ‖ĝ‖², with ĝ the gradient at unit norm; where they are
    independent (white), the second term is (1 − β)/(1 + β) of that. `growth_share` is the growth by steps that was
    measured over that of the coherent closure, from the ‖ĝ‖² of every step.

    Two runs have one optimiser: on the full batch without decay, so that only steps move the norm; and on minibatches
    with decay, to equilibrium. Judged is which closure describes which, to a factor of 1.25; and of the second run,
    over its last half and to 5 percent, whether r is at the equilibrium of white gradients, and whether a step turns a
    layer by the angle √(2ηλ/(1 + β)), whatever network and data. Both closures are for 4ηλ ≪ (1 − β)². The coherent one
    says nothing of the first 1/(1 − β) steps, in which momentum builds up; where more than a fifth of its growth is in
    these (`startup_share`), it is not judged, nor is an equilibrium of norms of whose fourth powers more than 5 percent
    are still those of the start (`remembered_share`). Checked is the exact law of the norm with momentum, decay and
    batches: at which share of the steps r is within rounding of it (`within_rounding`).
    """

    samples: int = count(200, "Number of digits.", least=10, most=1797)
    width: int = count(32, "Neurons in each of the two hidden layers.")
    random_labels: float = fraction(0.5, "Fraction of the labels that are drawn at random, so that the noise persists.")
    learning_rate: float = positive(0.002, "η.")
    momentum: float = number(0.9, "β; the closures are farther apart the larger it is.", least=0.3, most=0.99)
    decay_ratio: float = positive(
        0.016, "4ηλ/(1 − β)², which gives the weight decay λ on minibatches; far below one.", most=0.1
    )
    batch_size: int = count(4, "Digits in a minibatch, drawn with replacement.", least=2, most="samples")
    equilibrations: float = positive(12.0, "Length of the run on minibatches, in times (1 − β)/(4ηλ).", least=4.0)
    coherent_steps: int = count(1000, "Number of steps on the full batch.", least=20)
    starts: int = count(4, "Number of initial weights, from which each run is made.", least=2)
    seed: int = seed("Seed of the labels, of the first weights and of the batches.")

    reference = Reference.of(
        papers.NOETHER_DYNAMICS,
        "The norm of normalised weights averages the squares of their gradients, and so adapts their learning rate as "
        "RMSProp does; at equilibrium every step turns them by an angle that the hyperparameters set.",
        also="; the angle also in arXiv 2006.08419",
    )
    title = "Norms that set the learning rate"
    question = "What do learning rate, decay and momentum do to weights whose size does not matter?"
    meaning = MEANING
    figures = FIGURES
    minutes = 0.2
    theory = "closures of scale-invariant weights"
    task = "digits with random labels"
    told = (
        "{samples} digits of 8 × 8 pixels, a fraction {random_labels:g} of them with random labels; cross-entropy.",
        "Batch normalisation with ε = 0, without gain and shift; the last layer is divided by its norm.",
    )
    trains = "mlp, tanh, three normalised layers"
    flow = "heavy ball with rate {learning_rate:g}, momentum {momentum:g}, decay {_weight_decay:g} on minibatches"
    along = "charge"
    labelled = {"run": _RUNS, "step": "_edges", "charge": ("‖W₁‖²", "‖W₂‖²", "‖W₃‖²")}
    names = {"within_rounding": ("share of steps within rounding of the exact law", "1")}
    judged_claims = _CLAIMS
    tolerance = curve_tolerance(within_rounding=(0.0, "the law is exact, and rounding cannot exceed the bound"))
    checks = tuple(tolerance)
    tiny = {
        **{"samples": 100, "width": 16, "learning_rate": 0.02, "momentum": 0.5},
        **{"coherent_steps": 100, "equilibrations": 10.0, "starts": 3},
    }

    def trained(self) -> Values:
        """Train both ways, and hold the norms against both closures."""
        free, noisy = self._run(self.coherent_steps, 0.0), self._run(self._steps, self._weight_decay)
        of_start = free.norms[0] ** 2
        angles = np.add.reduceat(noisy.squared_angles, self._edges[:-1]) / np.diff(self._edges)[:, None, None]
        mean_gradients = np.mean(noisy.squared_gradients[noisy.late], axis=0)
        balance = equilibrium_squared_norm(mean_gradients, closure="white", **self._hyperparameters(self._weight_decay))
        steps, sampled = ("start", "layer", "step"), ("start", "layer", "sampled_step")
        return {
            "squared_norm": (steps, _in_front(noisy.norms[self._edges])),
            "white_norm": (steps, _in_front(noisy.white[self._edges])),
            "coherent_norm": (steps, _in_front(noisy.coherent[self._edges])),
            "angular_step": (steps, _in_front(np.sqrt(angles[self._windows]))),
            "relative_growth": (sampled, _in_front(free.norms**2 / of_start - 1)),
            "coherent_growth": (sampled, _in_front(free.coherent**2 / of_start - 1)),
            "growth_share": (("run", "start", "layer"), [free.growth_share, noisy.growth_share]),
            "equilibrium_share": (("start", "layer"), np.mean(noisy.norms[noisy.late], axis=0) / balance),
            "startup_share": (("start", "layer"), free.share_of_first(1 / (1 - self.momentum))),
            "remembered_share": (("start", "layer"), noisy.remembered_share),
            "late_angle": (("start", "layer"), np.sqrt(np.mean(noisy.squared_angles[noisy.late], axis=0))),
            "within_rounding": (
                ("run", "start", "charge"),
                [np.mean(each.within_rounding, axis=0) for each in (free, noisy)],
            ),
            "loss": (("start", "step"), noisy.loss),
        }

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Which closure describes which run, and what is so at equilibrium; runs are averages over the layers."""
        (free, noisy), theory = np.mean(found["growth_share"][1], axis=2), white_share(self.momentum)
        norms, angles = (np.mean(found[name][1], axis=1) for name in ("equilibrium_share", "late_angle"))
        factor, percent = {"least": 1 / _APART, "most": _APART}, {"least": 1 - _CLOSE, "most": 1 + _CLOSE}
        said = (
            ("On the full batch steps add to ‖W‖⁴ what coherent gradients do, over which it is 1.", free, factor),
            ("On minibatches they add what independent gradients do, over which it is 1.", noisy / theory, factor),
            ("On minibatches the mean of ‖W‖² is at its equilibrium, over which it is 1.", norms, percent),
            (
                "On minibatches a step turns a layer by √(2ηλ/(1 + β)), over which it is 1.",
                angles / self._angle,
                percent,
            ),
        )
        claims = [Claim.of_runs(name, *each, **bounds) for name, (*each, bounds) in zip(_CLAIMS, said, strict=True)]
        startup, remembered = (float(np.max(found[name][1])) for name in ("startup_share", "remembered_share"))
        early = f"the first steps, while momentum builds up, make {_share(startup)} of the growth of a norm"
        transient = f"{_share(remembered)} of the fourth power of a norm is still that of its start"
        known = [(startup <= 1 - 1 / _APART, early), (True, ""), *[(remembered <= _CLOSE, transient)] * 2]
        return [each.if_known(sure, reason) for each, (sure, reason) in zip(claims, known, strict=True)]

    def exact(self) -> Values:
        """What each closure says without a gradient; and that the law of the norm is exact."""
        layers = (self.starts, _HIDDEN_LAYERS + 1)
        return {
            "growth_share": (("run", "start", "layer"), [np.ones(layers), np.full(layers, white_share(self.momentum))]),
            "angular_step": (("start", "layer", "step"), np.full((*layers, len(self._edges)), self._angle)),
            "within_rounding": (("run", "start", "charge"), np.ones((2, *layers))),
        }

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """With the norms of the closure of each run, which need its gradients: they are drawn, and judged by claims."""
        tree = super().compare(observed, predicted)
        closures = {"squared_norm": observed["white_norm"], "relative_growth": observed["coherent_growth"]}
        return dataclasses.replace(
            tree,
            predicted=name_all(
                predicted.assign({name: each.drop_attrs() for name, each in closures.items()}), self.names
            ),
        )

    def _run(self, steps: int, weight_decay: float) -> NormPaths:
        """Every start trained, on minibatches if weights decay."""
        return train_normalised(
            self._networks,
            self._task,
            steps=steps,
            **self._hyperparameters(weight_decay),
            batch_size=self.batch_size if weight_decay else None,
            recorded=self._edges if weight_decay else [0, steps],
            seed=self.seed,
        )

    def _hyperparameters(self, weight_decay: float) -> dict[str, Any]:
        return {"learning_rate": self.learning_rate, "momentum": self.momentum, "weight_decay": weight_decay}

    @property
    def _weight_decay(self) -> float:
        return self.decay_ratio * (1 - self.momentum) ** 2 / (4 * self.learning_rate)

    @property
    def _angle(self) -> float:
        return equilibrium_angular_step(**self._hyperparameters(self._weight_decay))

    @property
    def _steps(self) -> int:
        return round(self.equilibrations * equilibration_steps(**self._hyperparameters(self._weight_decay)))

    @functools.cached_property
    def _edges(self) -> np.ndarray:
        """Recorded steps, from the first to the last."""
        return np.unique(np.linspace(0, self._steps - 1, min(_RECORDS, self._steps)).round().astype(int))

    @property
    def _windows(self) -> np.ndarray:
        """For each recorded step the number of the window after it, for the last that before it."""
        return np.append(np.arange(len(self._edges) - 1), len(self._edges) - 2)

    @functools.cached_property
    def _task(self) -> Labelled:
        data, draw = digits(), np.random.default_rng(self.seed)
        labels = data.targets.argmax(axis=1)[: self.samples]
        random = draw.random(len(labels)) < self.random_labels
        labels[random] = draw.integers(data.targets.shape[1], size=int(random.sum()))
        return Labelled(data.inputs[: self.samples], labels, tuple(map(str, range(10))), name="digits")

    @functools.cached_property
    def _networks(self) -> list[ScaleInvariantMLP]:
        widths = (self._task.inputs.shape[1], *[self.width] * _HIDDEN_LAYERS, len(self._task.class_names))
        return [ScaleInvariantMLP(widths, seed=self.seed + each) for each in range(self.starts)]


def _share(share: float) -> str:
    return f"{numbers.number(100 * share, 2)} %"


def _in_front(path: np.ndarray) -> np.ndarray:
    """Starts and layers before the steps."""
    return path.transpose(1, 2, 0)
