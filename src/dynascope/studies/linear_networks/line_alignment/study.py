"""Alignment on a line: the target and the initial weights determine whether the layers of a linear network align."""

from __future__ import annotations

import functools
import itertools
from typing import Annotated

import numpy as np
import optax
import xarray as xr
from annotated_types import Ge

from dynascope.comparison import Claim, report_claims
from dynascope.flows.solvers.solver import Solver
from dynascope.networks import TwoLayer
from dynascope.prediction.observation import observe
from dynascope.probes.alignment.line import LineLayers
from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.studies.linear_networks.line_alignment import page
from dynascope.studies.linear_networks.line_alignment.claims import direction_claim
from dynascope.studies.linear_networks.line_alignment.starts import (
    PARAMETRISED,
    STARTS,
    line_starts,
    parametrised_start,
)
from dynascope.tasks import Task
from dynascope.tasks.known_modes import line_regression
from dynascope.theory import LayerRates, line_inputs, papers
from dynascope.training.descend import Descent
from dynascope.validation.bounded import FiniteFloat, Fraction, PositiveFloat, PositiveInt, Seed

_DESCENTS = tuple(itertools.product(("linear", "relu"), ("sgd", "adam")))
_DISPLAY_NAMES = {"relu": "ReLU", "sgd": "SGD", "adam": "Adam"}


class LineAlignment(Study):
    """Tests the predicted alignment, norms and loss of two-layer networks on inputs along a line.

    The network is f(x) = x W u, the inputs are x = a n along a unit vector n, and the targets are y = S a plus noise.
    Networks are trained from several initialisations. The small initialisation is Gaussian; the norm of each layer is
    about a fifth of the norm at which aligned layers fit the target. The large orthogonal initialisation is in the
    kernel (lazy) phase. With parallel or nearly parallel layers, the initial output is too large; with opposite layers,
    it has the wrong sign. Xavier+ and Kaiming+ are the parametrisations of wide networks that learn features. They have
    independent Gaussian layers: equally large ones with Xavier+, and a much smaller second layer with Kaiming+.

    The study compares the linear network under gradient flow with the exact solution. One claim states that the
    alignment changes in the predicted direction from every initialisation. Another claim states the same for SGD with
    small steps, for the initialisations with a predicted change. The results with Adam and those for ReLU networks do
    not affect the verdict, because the theory covers neither. The initial weights of ReLU networks are larger by a
    factor of √2, because half of the neurons are active on each input.
    """

    width: Annotated[int, Ge(2)] = parameter(50, "Number of hidden neurons h.")
    input_dimension: PositiveInt = parameter(3, "Number of inputs d.")
    target: FiniteFloat = parameter(1.0, "Slope S of the targets along the line; it may be negative but not zero.")
    noise: Fraction = parameter(0.1, "Standard deviation of the noise on the targets, relative to S.")
    disturbance: Fraction = parameter(0.3, "Angle in radians by which nearly parallel and opposite layers are rotated.")
    first_rate: PositiveFloat = parameter(1.0, "Learning rate of the first layer W.")
    second_rate: PositiveFloat = parameter(0.5, "Learning rate of the second layer u.")
    samples: Annotated[int, Ge(2)] = parameter(100, "Number of samples.")
    parametrisations: list[str] = parameter(
        PARAMETRISED,
        'Further initialisations, drawn from parametrisations that learn features: "Xavier+" or "Kaiming+"; the list '
        "may be empty.",
        options=PARAMETRISED,
        fewest=0,
    )
    descent: bool = parameter(True, "Whether to also train networks by SGD and Adam.")
    batch_size: PositiveInt = parameter(10, "Batch size for SGD and Adam.", most="samples")
    times: Annotated[int, Ge(2)] = parameter(200, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the data, of the initial weights and of the batches.")

    reference = Reference.of(
        papers.ON_A_LINE,
        "On inputs along a line, two-layer linear networks of any width and with any learning rates have an exact "
        "solution. The target and the initial output determine whether the layers align or disalign, and whether they "
        "grow or shrink.",
    )
    title = "Do layers align?"
    question = "Do the layers of a network align during training, and what determines whether they do?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"\frac{dg}{dt} = k \left( S g - \gamma P g^2 + \gamma Q \right), \quad \theta = \gamma \left( P g - "
        r"\frac{Q}{g} \right)"
    )
    minutes = 0.4
    theory = "exact solution on a line"
    trains = "linear"
    axes = ("start", "time")
    labelled = {"start": lambda study: (*STARTS, *study.parametrisations)}
    names = {
        "alignment_change": ("change in the alignment", "1"),
        "rescaling": ("growth or shrinkage of the layers", "1"),
        "alignment_sign": ("sign of the change in the alignment", "1"),
    }
    tolerance = exact(
        *("loss", "alignment", "first_norm", "second_norm"),
        reason="the theory is exact, and the local error of the solver is below 1e-9",
    )
    tiny = {"width": 4, "input_dimension": 2, "samples": 20, "descent": False, "times": 40}

    def check(self) -> None:
        """Check that the target is not zero."""
        self.require(self.target, "target", "choose a finite number other than zero")

    def trained(self) -> xr.Dataset:
        """Train from every initialisation by gradient flow, then linear and ReLU networks by SGD and Adam."""
        rates = {"first": self.first_rate, "second": self.second_rate}
        solver = Solver(relative_tolerance=1e-9, absolute_tolerance=1e-12)
        run = self.integrate(self._networks("linear"), LineLayers.of(self._data), learning_rate=rates, solver=solver)
        run = self.run_record(run, {}, members="start").assign_attrs(scale=1.0)
        descents = _DESCENTS if self.descent else ()
        run = run.assign({f"{'_'.join(each)}_alignment": self._descent_alignment(*each) for each in descents})
        return self.run_record(run, report_claims(self._direction_claims(run)))

    def exact(self) -> Values:
        """Evaluate the exact solution from each initialisation, and the quantities that are known before training."""
        start, times = (self._start, self._data), self._times
        norms = line_inputs.layer_norms(*start, times)
        change = line_inputs.alignment_change(*start)
        return {
            "loss": line_inputs.line_trajectory(*start, times).loss,
            "alignment": line_inputs.layer_cosine(*start, times),
            "first_norm": norms.first,
            "second_norm": norms.second,
            "alignment_change": ("start", change.size),
            "alignment_sign": ("start", change.sign),
            "rescaling": ("start", line_inputs.rescaling(*start).case),
            "time_scale": ("start", line_inputs.time_scale(*start).time),
        }

    @property
    def deciding_claims(self) -> tuple[str, ...]:
        """The direction in which the alignment of the linear network changes, under gradient flow and under SGD."""
        return ("gradient flow", "linear sgd") if self.descent else ("gradient flow",)

    def _direction_claims(self, run: xr.Dataset) -> list[Claim]:
        """Claims about the direction in which the alignment changes."""
        sign = np.asarray(line_inputs.alignment_change(self._start, self._data).sign)
        statement = (
            "From every initialisation, the alignment in the linear network under gradient flow changes in the "
            "predicted direction, or stays constant if no change is predicted."
        )
        claims = [
            direction_claim("gradient flow", statement, run["alignment"].transpose("time", "start").to_numpy(), sign)
        ]
        for network, optimizer in _DESCENTS if self.descent else ():
            curve = run[f"{network}_{optimizer}_alignment"].transpose("step", "start").to_numpy()
            statement = (
                "From every initialisation with a predicted change, the alignment in the "
                f"{_DISPLAY_NAMES.get(network, network)} network trained by {_DISPLAY_NAMES[optimizer]} changes in the "
                "direction predicted for the linear network."
            )
            claims.append(direction_claim(f"{network} {optimizer}", statement, curve[:, sign != 0], sign[sign != 0]))
        return claims

    def _descent_alignment(self, activation: str, optimizer: str) -> xr.DataArray:
        """Alignment during SGD or Adam, from each initialisation."""
        # Far below the stability limit, which depends on the curvature at the largest initialisation.
        step = 0.05 / (float(self._data.power) * (self.first_rate + self.second_rate) * 9 * abs(self.target))
        steps = int(np.ceil(self._times[-1] / step))
        # Adam moves a weight by about its rate in each step: in total, several times the largest initial weights.
        adam = 15 * np.sqrt(abs(self.target) / self.width) / steps
        sgd = {"first": step * self.first_rate, "second": step * self.second_rate}
        recorded = np.unique(np.linspace(0, steps, self.times).astype(int))
        rate, used = (sgd, "sgd") if optimizer == "sgd" else (float(adam), optax.adam)
        method = Descent(used, learning_rate=rate, steps=steps, batches=self.batch_size, save=recorded)
        probes, networks = [LineLayers.of(self._data)], self._networks(activation)
        run = observe(self._task, networks, method=method, probes=probes, seed=self.seed).record
        return run["alignment"].rename(seed="start").assign_coords(start=[*STARTS, *self.parametrisations])

    @property
    def _start(self) -> line_inputs.LineNetwork:
        return line_inputs.LineNetwork(*self._layers, rates=LayerRates(self.first_rate, self.second_rate))

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Times up to ten times the longest time scale."""
        longest = np.max(line_inputs.time_scale(self._start, self._data).time)
        return np.linspace(0.0, 10 * float(longest), self.times)

    @functools.cached_property
    def _data(self) -> line_inputs.LineData:
        return line_inputs.line_data(self._task.inputs, self._task.targets)

    @functools.cached_property
    def _task(self) -> Task:
        options = {"samples": self.samples, "dimension": self.input_dimension, "seed": self.seed}
        return line_regression(self.target, self.noise, **options)

    @functools.cached_property
    def _layers(self) -> tuple[np.ndarray, np.ndarray]:
        """W and u of every initialisation, shapes (start, d, h) and (start, h)."""
        draw = np.random.default_rng([self.seed, 1])
        direction, slope = np.asarray(self._data.direction), float(self._data.target)
        chosen = line_starts(direction, slope, self.width, self.disturbance, draw)
        # Each parametrisation has its own generator, so that its weights do not depend on which others are chosen.
        drawn = [
            parametrised_start(
                name,
                slope,
                (self.input_dimension, self.width),
                np.random.default_rng([self.seed, 2, PARAMETRISED.index(name)]),
            )
            for name in self.parametrisations
        ]
        first, second = (np.stack([*chosen[k], *(each[k] for each in drawn)]) for k in range(2))
        return first, second

    def _networks(self, activation: str) -> list[TwoLayer]:
        network = TwoLayer(self.input_dimension, self.width, 1, activation=activation)
        size = np.sqrt(2.0) if activation == "relu" else 1.0
        rows = size * np.concatenate([np.swapaxes(self._layers[0], -1, -2), self._layers[1][..., None]], axis=-1)
        return [network.with_neurons(each) for each in rows]
