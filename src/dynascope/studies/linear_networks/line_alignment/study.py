"""The layers of a linear network align, or disalign, as target and start decide before training."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import optax
import xarray as xr

from dynascope.comparison import Claim, report_claims
from dynascope.networks import TwoLayer
from dynascope.observation import observe
from dynascope.probes.alignment.line import LineLayers
from dynascope.results import Chart
from dynascope.studies import Reference, Study, Values, exact
from dynascope.studies.fields import count, flag, fraction, number, positive, seed
from dynascope.studies.linear_networks.line_alignment.page import FIGURES, MEANING
from dynascope.studies.linear_networks.line_alignment.starts import STARTS, line_starts
from dynascope.tasks import Task
from dynascope.tasks.known_modes import line_regression
from dynascope.theory import line_inputs, papers

_STAYS = 1e-6  # a change of alignment that is smaller is one of the solver
_DESCENTS = tuple(itertools.product(("linear", "relu"), ("sgd", "adam")))
_CALLED = {"relu": "ReLU", "sgd": "SGD", "adam": "Adam"}
_OF_DESCENT = tuple(
    Chart(
        f"relu_{name.lower()}_alignment",
        over="step",
        title=f"ReLU networks trained by {name}",
        caption=f"The alignment of both layers of ReLU networks from the same starts, along the steps of {name}. The "
        "theory is not about these.",
        y_label="alignment of the layers",
    )
    for name in ("SGD", "Adam")
)


class LineAlignment(Study):
    """Alignment and norms of both layers, and the loss, of two-layer networks on inputs along a line, from five starts.

    The network is f(x) = x W u, the inputs are x = a n, and the targets y = S a with noise. The small start is Gaussian
    and a fifth of the size that S needs; the large orthogonal one is in the kernel phase; where the layers are parallel
    or nearly so the output is too large, and where they are opposite it has the wrong sign.

    Judged is the linear network under gradient flow, which the theory solves exactly, and for how many starts the
    alignment ends on the side of its beginning that theory says; this too where it is trained by small steps of SGD,
    for those that move. Adam, and ReLU networks of √2 times as large weights, as half of their neurons answer each
    input, are reported: of them the theory says nothing.
    """

    width: int = count(50, "Number of hidden neurons h, at least two.", least=2)
    input_dimension: int = count(3, "Number of inputs d.")
    target: float = number(1.0, "Slope S of the targets along the line, of any sign but not zero.", nonzero=True)
    noise: float = fraction(0.1, "Standard deviation of the noise on the targets, relative to S.")
    disturbance: float = fraction(0.3, "Angle between layers that are nearly parallel, or nearly opposite, in radians.")
    first_rate: float = positive(1.0, "Learning rate of the first layer W.")
    second_rate: float = positive(0.5, "Learning rate of the second layer u.")
    samples: int = count(100, "Number of samples.", least=2)
    descent: bool = flag(True, "Whether SGD and Adam are trained too.")
    batch_size: int = count(10, "Samples in a step of SGD or Adam.", most="samples")
    times: int = count(200, "Number of times at which both sides are recorded.", least=2)
    seed: int = seed("Seed of the data, of the initial weights and of the batches.")

    reference = Reference.of(
        papers.ON_A_LINE,
        "On inputs along a line the layers of a two-layer linear network of any width and learning rates follow "
        "an exact solution: they align or disalign, and grow or shrink, as target and initial output decide.",
    )
    title = "Do layers align?"
    question = "Do the layers of a network align when it learns, and what decides that?"
    figures = FIGURES
    meaning = MEANING
    minutes = 0.4
    theory = "exact solution on a line"
    trains = "linear"
    axes = ("start", "time")
    labelled = {"start": STARTS}
    names = {
        "alignment_change": ("change of the alignment", "1"),
        "rescaling": ("how the sizes of the layers move", "1"),
        "alignment_sign": ("sign of the change of alignment", "1"),
    }
    tolerance = exact(
        *("loss", "alignment", "first_norm", "second_norm"),
        reason="the theory is exact, and the solver keeps each step within 1e-9",
    )
    tiny = {"width": 4, "input_dimension": 2, "samples": 20, "descent": False, "times": 40}

    def trained(self) -> xr.Dataset:
        """Train all starts by gradient flow, then linear and ReLU networks by SGD and Adam."""
        rates = {"first": self.first_rate, "second": self.second_rate}
        accuracy = {"relative_tolerance": 1e-9, "absolute_tolerance": 1e-12}
        run = self.followed(self._networks("linear"), LineLayers.of(self._data), learning_rate=rates, **accuracy)
        run = self.run_record(run, {}, members="start").assign_attrs(scale=1.0)
        descents = _DESCENTS if self.descent else ()
        run = run.assign({f"{'_'.join(each)}_alignment": self._descended(*each) for each in descents})
        return self.run_record(run, report_claims(self._sides(run)))

    def exact(self) -> Values:
        """The exact solution from each start, and what it says before training."""
        start, rates, times = (*self._layers, self._data), self._rates, self._times
        norms = line_inputs.layer_norms(*start, times, **rates)
        change = line_inputs.alignment_change(*start, **rates)
        return {
            "loss": line_inputs.trajectory(*start, times, **rates).loss,
            "alignment": line_inputs.alignment(*start, times, **rates),
            "first_norm": norms.first,
            "second_norm": norms.second,
            "alignment_change": ("start", change.size),
            "alignment_sign": ("start", change.sign),
            "rescaling": ("start", line_inputs.rescaling(*start, **rates).case),
            "time_scale": ("start", line_inputs.time_scale(*start, **rates).time),
        }

    def charts(self) -> tuple[Chart, ...]:
        """With those of descent where there is any."""
        return self.figures + (_OF_DESCENT if self.descent else ())

    @property
    def judged_claims(self) -> tuple[str, ...]:
        """On which side alignment ends in the linear network, under gradient flow and by small steps."""
        return ("gradient flow", "linear sgd") if self.descent else ("gradient flow",)

    def _sides(self, run: xr.Dataset) -> list[Claim]:
        """What is claimed of the sides on which alignment ends."""
        sign = np.asarray(line_inputs.alignment_change(*self._layers, self._data, **self._rates).sign)
        of = "in the linear network under gradient flow"
        claims = [_side("gradient flow", of, run["alignment"].transpose("time", "start").to_numpy(), sign)]
        for network, optimizer in _DESCENTS if self.descent else ():
            curve = run[f"{network}_{optimizer}_alignment"].transpose("step", "start").to_numpy()
            of = f"in the {_CALLED.get(network, network)} network by {_CALLED[optimizer]}"
            claims.append(_side(f"{network} {optimizer}", of, curve[:, sign != 0], sign[sign != 0]))
        return claims

    def _descended(self, activation: str, optimizer: str) -> xr.DataArray:
        """Alignment over the steps, from each start."""
        # Far below what the curvature at the largest start allows.
        step = 0.05 / (float(self._data.power) * (self.first_rate + self.second_rate) * 9 * abs(self.target))
        steps = int(np.ceil(self._times[-1] / step))
        # Enough for every weight to go some times as far as the largest start is from zero.
        adam = 15 * np.sqrt(abs(self.target) / self.width) / steps
        sgd = {"first": step * self.first_rate, "second": step * self.second_rate}
        probes, record_steps = [LineLayers.of(self._data)], np.unique(np.linspace(0, steps, self.times).astype(int))
        rate, used = (sgd, "sgd") if optimizer == "sgd" else (float(adam), optax.adam)
        options = {"learning_rate": rate, "optimizer": used, "batch_size": self.batch_size, "seed": self.seed}
        options |= {"flow": "descent", "steps": steps, "record_steps": record_steps, "probes": probes}
        run = observe(self._task, self._networks(activation), **options)
        return run["alignment"].rename(seed="start").assign_coords(start=list(STARTS))

    @property
    def _rates(self) -> dict[str, float]:
        return {"first_rate": self.first_rate, "second_rate": self.second_rate}

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until ten of the longest time scale."""
        longest = np.max(line_inputs.time_scale(*self._layers, self._data, **self._rates).time)
        return np.linspace(0.0, 10 * float(longest), self.times)

    @functools.cached_property
    def _data(self) -> line_inputs.LineData:
        return line_inputs.line_data(self._task.inputs, self._task.targets)

    @functools.cached_property
    def _task(self) -> Task:
        asked = {"samples": self.samples, "dimension": self.input_dimension, "seed": self.seed}
        return line_regression(self.target, self.noise, **asked)

    @functools.cached_property
    def _layers(self) -> tuple[np.ndarray, np.ndarray]:
        """W and u of every start, shapes (start, d, h) and (start, h)."""
        draw = np.random.default_rng([self.seed, 1])
        direction, slope = np.asarray(self._data.direction), float(self._data.target)
        return line_starts(direction, slope, self.width, self.disturbance, draw)

    def _networks(self, activation: str) -> list[TwoLayer]:
        network = TwoLayer(self.input_dimension, self.width, 1, activation=activation)
        size = np.sqrt(2.0) if activation == "relu" else 1.0
        rows = size * np.concatenate([np.swapaxes(self._layers[0], -1, -2), self._layers[1][..., None]], axis=-1)
        return [network.with_neurons(each) for each in rows]


def _side(name: str, of: str, curve: np.ndarray, sign: np.ndarray) -> Claim:
    """From every start the alignment, shape (times, starts), ends on that side of its beginning, or where it was."""
    change = curve[-1] - curve[0]
    right = np.where(np.abs(change) > _STAYS, np.sign(change), 0) == sign
    statement = f"From every start the alignment {of} ends on the side that theory says."
    return Claim(name, statement, int(right.sum()), least=len(sign))
