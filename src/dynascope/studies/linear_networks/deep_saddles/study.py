"""Deep linear networks: lazy or from saddle to saddle, by how the initial variance falls with the width."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
import xarray as xr

from dynascope.errors import DivergenceError
from dynascope.flows import gradient_flow
from dynascope.networks import DeepLinear
from dynascope.results.steps_seen import crossing_times
from dynascope.studies import Reference, Study, Values, exact
from dynascope.studies.fields import count, numbers, seed
from dynascope.studies.linear_networks.deep_saddles.page import FIGURES, MEANING
from dynascope.studies.linear_networks.deep_saddles.random_networks import Moments, moments_by_width
from dynascope.studies.power_fit import measured_exponents
from dynascope.studies.tolerances import with_limits
from dynascope.tasks import Task
from dynascope.theory.deep_modes import escape_time, initialisation_exponents, strength_at, time_to_strength
from dynascope.theory.deep_modes.saddle import escape_slope

_PLATEAU = "plateau_rank", "plateau_loss"
_RESTS, _UNREST = 0.03, "a plateau is not quite reached from a start of finite size"
_LONGEST = 5e5  # steps of the solver
_ESCAPES, _LEFT_OUT = 0.04, "the time spent on the jump itself is left out of the leading order"
_MOST_LEFT_OUT = 0.15  # where twice as much is still far from half or twice the slope


class DeepSaddles(Study):
    """Networks x W₁ ⋯ W_L with weights of variance width^−γ, at the start and in training on whitened inputs.

    At the start: the exponents with which the output variance and the tangent kernel scale with the width, fitted to
    random networks for every depth and γ; `_error` is the standard error of the fit. They are those of a transition at
    γ = 1, beyond which the kernel vanishes and the network starts near the saddle at the origin.

    In training there: (i) aligned layers, whose modes are known in closed form: `mode_strength`, `loss` and
    `learned_rank`, Σ sᵢ/σᵢ; (ii) random layers at each of `training_gammas`: `plateau_rank` and `plateau_loss`, the
    learned rank and the loss halfway between jumps, for the largest γ, which should be 0, 1, 2, … and those of the best
    maps of that rank (the paper's conjecture); and `escape_slope`, how the time of the first jump grows with 1/scale,
    over theory (dt/dlog for two layers, dlog t/dlog beyond). The prefactor of that time depends on the random start.
    """

    depths: list[int] = numbers([2, 3, 4], "Numbers of layers for which the start is measured.", whole=True, least=2)
    gammas: list[float] = numbers([0.75, 1.0, 1.25, 1.75], "γ at which the start is measured.")
    widths: list[int] = numbers(
        [32, 64, 128, 256], "Hidden widths for the exponents.", fewest=3, whole=True, increasing=True, least=2
    )
    draws: int = count(60, "Number of random networks for each depth, γ and width.")
    depth: int = count(3, "L ≥ 2 of the networks that are trained.", least=2)
    width: int = count(30, "Hidden width of the random networks that are trained.", least=2)
    training_gammas: list[float] = numbers(
        [3.0, 4.0, 5.0],
        "γ > 1 at which they start, two or more; with more layers plateaus last ever longer, as "
        "the width to the power (γ − 1)(L/2 − 1).",
        fewest=2,
        increasing=True,
        above=1.0,
    )
    singular_values: list[float] = numbers(
        [4.0, 2.0, 1.0], "σᵢ of the target map, which falls from one to the next.", fewest=2, above=0.0
    )
    times: int = count(2000, "Number of times at which both are recorded.", least=100)
    seed: int = seed("Seed of all random networks.")

    reference = Reference.of(
        "A. Jacot, F. Ged, B. Şimşek, C. Hongler, F. Gabriel, Saddle-to-Saddle Dynamics in Deep Linear Networks: Small "
        "Initialization Training, Symmetry, and Sparsity (arXiv 2106.15933)",
        "With weights of variance width^−γ, deep linear networks turn at γ = 1 from lazy training to waiting at "
        "saddles of rank 0, 1, 2, …, the longer the deeper they are.",
    )
    title = "From saddle to saddle"
    question = "When does a deep network learn its task as a whole, and when one piece after the other?"
    figures = FIGURES
    meaning = MEANING
    minutes = 0.3
    theory = "deep modes"
    along = ("time", "level", "exponent")
    told = ("Whitened inputs, and a target map of singular values {singular_values}.",)
    trains = "linear of {depth} layers"
    flow = "gradient flow"
    labelled = {
        **{"scale": "_scales", "scaling_parameter": "widths", "exponent": "gammas"},
        "architecture": lambda study: [f"{depth} layers" for depth in study.depths],
    }
    names = {
        "exponent": ("exponent γ of the initial weights", "1"),
        "regime": ("kind of learning", "1"),
        "random_loss": ("loss from a random start", "1"),
        "plateau_loss": ("loss of the plateau", "1"),
        "plateau_rank": ("rank of the plateau", "1"),
        "learned_rank": ("learned rank", "1"),
        "random_learned_rank": ("learned rank from a random start", "1"),
        "escape_slope": ("slope of the escape time against the scale", "1"),
        "log_escape_time": ("logarithm of the escape time", "1"),
        "log_kernel": ("logarithm of the kernel", "1"),
        "log_output_variance": ("variance of the output (its logarithm)", "1"),
        "output_variance_exponent": ("exponent of the variance of the output in the width", "1"),
    }
    tolerance = {
        **exact(
            *("loss", "mode_strength", "learned_rank"),
            error=1e-5,
            reason="the theory is exact, and long plateaus add up the solver's error of 1e-10 for each step",
        ),
        **exact(
            *("output_variance_exponent", "kernel_exponent"),
            error=0.03,
            reason="the moments of a finite number of random networks scatter by a percent or two",
        ),
        **exact(*_PLATEAU, error=_RESTS, reason=_UNREST),
        **exact("escape_slope", error=_ESCAPES, reason=_LEFT_OUT),
    }
    tiny = {
        **{"depths": [2, 3], "gammas": [0.75, 1.5], "widths": [16, 64, 256], "width": 12},
        **{"training_gammas": [4.0, 6.0], "singular_values": [3.0, 1.0], "times": 600},
    }

    def check(self) -> None:
        """Modes are learned in the order in which they are given, and some kernel grows or vanishes."""
        falling = sorted(self.singular_values, reverse=True)
        self.require(falling == list(self.singular_values), "singular_values", "give the largest first")
        self.require(set(self.gammas) != {1.0}, "gammas", "give another than 1, where the kernel keeps its size")

    def trained(self) -> Values:
        """Draw random networks, and train aligned and random ones by gradient flow."""
        modes, clock = len(self._targets), (self._scales, self._targets[0])
        aligned = self.depth * [self._initial_strength ** (1 / self.depth) * np.eye(modes)]
        (strength,), (loss,) = self._train(aligned, [1.0])
        # Weights of unit variance, which the scale width^(−γ/2) multiplies.
        sizes, draw = [modes, *(self.depth - 1) * [self.width], modes], np.random.default_rng([self.seed, 1])
        weights = [draw.normal(size=shape) for shape in itertools.pairwise(sizes)]
        random, random_loss = self._train(weights, self._scales)
        ranks = np.sum(random / self._targets, axis=-1)
        escapes = np.array([self._jump_times(each)[0] for each in ranks])
        plateaus = self._plateaus(ranks[-1], random_loss[-1])
        return {
            "loss": loss,
            "mode_strength": (("time", "mode"), strength),
            "learned_rank": np.sum(strength / self._targets, axis=-1),
            "random_loss": (("scale", "time"), random_loss),
            "random_learned_rank": (("scale", "time"), ranks),
            **{name: ("level", values) for name, values in zip(_PLATEAU, plateaus, strict=True)},
            "log_escape_time": ("scale", np.log10(escapes)),
            "escape_slope": ((), escape_slope(escapes, *clock, depth=self.depth)),
            **self._measured_start(),
        }

    def exact(self) -> Values:
        """Closed forms of the aligned modes, and the exponents, ranks and levels of the paper."""
        targets = self._targets
        path = strength_at(self._times[:, None], targets, self._initial_strength, depth=self.depth)
        escapes = np.asarray(escape_time(targets[0], self._scales**self.depth, depth=self.depth))
        exponents = [[initialisation_exponents(depth, gamma) for gamma in self.gammas] for depth in self.depths]
        start, ranks = ("architecture", "exponent"), np.sum(np.asarray(path.strength) / targets, axis=1)
        loss = np.sum(np.asarray(path.residual) ** 2, axis=1) / 2
        self._require_plateaus(ranks, loss)
        return {
            "loss": loss,
            "mode_strength": (("time", "mode"), path.strength),
            "learned_rank": ranks,
            "plateau_rank": ("level", np.arange(float(len(targets)))),
            "plateau_loss": ("level", [np.sum(targets[rank:] ** 2) / 2 for rank in range(len(targets))]),
            "escape_slope": ((), escape_slope(escapes, self._scales, targets[0], depth=self.depth)),
            "output_variance_exponent": (start, [[float(each.output_variance) for each in row] for row in exponents]),
            "kernel_exponent": (start, [[float(each.kernel) for each in row] for row in exponents]),
            "regime": (start, [[str(each.regime) for each in row] for row in exponents]),
        }

    def judged(self, predicted: xr.Dataset) -> xr.Dataset:
        """The prediction with its tolerances, wider where aligned layers are as far from the leading order."""
        escapes = exact("escape_slope", error=max(_ESCAPES, 2 * self._left_out), reason=_LEFT_OUT)
        unrest = self._unrest(predicted["learned_rank"].to_numpy(), predicted["loss"].to_numpy())
        rests = exact(*_PLATEAU, error=max(_RESTS, 2 * unrest), reason=_UNREST)
        return with_limits(super().judged(predicted), escapes | rests)

    def _train(self, weights: Sequence[np.ndarray], scales: Iterable[float]) -> tuple[np.ndarray, np.ndarray]:
        """Strengths of the target's modes, shape (scales, times, modes), and the loss."""
        frame = DeepLinear([weights[0].shape[0], *(each.shape[1] for each in weights)])
        run = gradient_flow(
            eqx.tree_at(lambda network: network.weights, frame, tuple(weights)),
            self._task,
            duration=float(self._times[-1]),
            save=self._times,
            scale=list(scales),
            statistics={"mode_strength": (_diagonal, ("mode",))},
            relative_tolerance=1e-10,
            # At the end steps are as short as on a jump, and there is nothing left to see.
            loss_target=1e-18 * float(np.sum(self._targets**2)),
        )
        return run["mode_strength"].to_numpy(), run["loss"].to_numpy()

    @functools.cached_property
    def _task(self) -> Task:
        """Whitened inputs, and targets whose modes are the coordinates; by symmetry of the start that is any basis."""
        modes = len(self._targets)
        inputs = np.sqrt(modes) * np.eye(modes)
        return Task(inputs, inputs * self._targets, name="whitened inputs")

    @functools.cached_property
    def _left_out(self) -> float:
        """What the leading order leaves out of the escape slope of aligned layers, as large as the random ones."""
        starts, strongest = (self._scales[-2:] * self.width**0.5) ** self.depth, self._targets[0]
        with jax.enable_x64(True):
            times = time_to_strength(strongest / 2, strongest, np.minimum(starts, strongest / 2), depth=self.depth)
        return abs(escape_slope(np.asarray(times), self._scales, strongest, depth=self.depth) - 1)

    def _unrest(self, ranks: np.ndarray, loss: np.ndarray) -> float:
        """How far from their plateaus aligned modes of these learned ranks and losses rest, over the highest."""
        levels, plateaus = np.cumsum(self._targets[::-1] ** 2)[::-1] / 2, self._plateaus(ranks, loss)
        # Halfway between two jumps the rank is a whole number even where both modes are half learned.
        off, above = plateaus[0] - np.arange(len(levels)), plateaus[1] - levels
        return float(max(np.abs(off).max() / (len(levels) - 1), np.abs(above).max() / levels[0]))

    def _plateaus(self, ranks: np.ndarray, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Learned rank and loss halfway between the jumps, from the start on."""
        middles = np.convolve([0.0, *self._jump_times(ranks)], [0.5, 0.5], "valid")
        return np.interp(middles, self._times, ranks), np.interp(middles, self._times, loss)

    def _require_plateaus(self, ranks: np.ndarray, loss: np.ndarray) -> None:
        """Refuse targets of which the aligned modes do not rest, or rest for too long."""
        problem = f"modes of strengths {self.singular_values} are learned together, without plateaus between them"
        remedy = "choose strengths further apart, or larger training_gammas"
        self.require(self._unrest(ranks, loss) < _RESTS, "singular_values", remedy, problem=problem)
        problem = f"from {self.training_gammas} the jump takes too large a part of the time until then"
        self.require(self._left_out < _MOST_LEFT_OUT, "training_gammas", "choose larger ones", problem=problem)
        # Once a mode is learned, no step is longer than a few of the time constants with which it rests.
        resting = self._times[-1] - self._jump_times(ranks)[0]
        steps = resting * self.depth * self._targets[0] ** (2 - 2 / self.depth) / 3
        problem = f"the last plateaus take {steps:.0e} steps of the solver"
        remedy = "choose a smaller one as the last, or strengths closer to each other"
        self.require(steps < _LONGEST, "training_gammas", remedy, problem=problem)

    def _jump_times(self, ranks: np.ndarray) -> np.ndarray:
        """When the learned rank first passes ½, 1½, …; a random start may come back a little."""
        halves = np.arange(len(self._targets)) + 0.5
        if ranks[-1] <= halves[-1]:
            problem = f"a random network has learned a rank of {ranks[-1]:.2g} only"
            remedy = "choose smaller training_gammas, or another seed"
            raise DivergenceError(problem, time=float(self._times[-1]), remedy=remedy)
        return crossing_times(self._times, -ranks, -halves)

    def _measured_start(self) -> dict[str, tuple[Any, np.ndarray]]:
        """Moments of random networks, and the exponents with which they scale with the width."""
        moments = moments_by_width(self.depths, self.gammas, self.widths, draws=self.draws, seed=self.seed)
        measured, axes = {}, ("architecture", "exponent", "scaling_parameter")
        for name, values in zip(Moments._fields, moments, strict=True):
            measured |= measured_exponents(name, np.asarray(self.widths, float), values, "exponent")
            measured[f"log_{name}"] = axes, np.log10(values)
        return measured

    @property
    def _targets(self) -> np.ndarray:
        return np.asarray(self.singular_values, float)

    @property
    def _scales(self) -> np.ndarray:
        """Standard deviations width^(−γ/2) of the weights, the largest first."""
        return self.width ** (-np.asarray(self.training_gammas, float) / 2)

    @property
    def _initial_strength(self) -> float:
        """s₀ of the aligned modes: layers as large as the random ones of the smallest scale, ε = scale·√width."""
        return float((self._scales[-1] * self.width**0.5) ** self.depth)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Equally spaced in their logarithm, until the slowest mode of the smallest start has long been learned."""
        slowest = float(escape_time(self._targets[-1], self._initial_strength, depth=self.depth))
        rise = self._targets[-1] ** -(2 - 2 / self.depth)
        return np.concatenate([[0.0], np.geomspace(0.01 / self._targets[0], 2.5 * slowest + 20 * rise, self.times - 1)])


def _diagonal(network: DeepLinear) -> Any:
    return functools.reduce(lambda product, weight: product @ weight, network.weights).diagonal()
