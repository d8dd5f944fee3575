"""Gradient descent deviates from gradient flow at first order in η, but from a modified flow only at second order."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from annotated_types import Ge, Interval
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.networks import MLP
from dynascope.probes.diffusion import top_curvatures
from dynascope.studies import Reference, Study, Values, curve_tolerance, parameter
from dynascope.studies.symmetry.modified_flow import page
from dynascope.tasks import Task
from dynascope.theory import SGD, papers
from dynascope.theory.symmetry import convergence_orders, modified_loss, shifted_start
from dynascope.training import Descent, descend
from dynascope.training.optimizers import decayed
from dynascope.validation.bounded import NonNegativeFloat, PositiveFloat, PositiveInt, Seed

_FLOWS = ("gradient flow", "modified flow", "modified flow, shifted start")
_OUTPUTS, _TEACHER_WIDTH, _TEACHER_SCALE = 2, 12, 2.0


class ModifiedFlow(Study):
    """Measures the distance of gradient descent with momentum from three flows, at successively halved learning rates.

    A tanh network with loss L, including weight decay, is trained with momentum from zero velocity. In all flows, step
    k corresponds to the time t = ηk. Gradient flow on L/(1 − β) is the limit of infinitesimal steps. The modified flow
    descends L/(1 − β) + η(1 + β)/(4(1 − β)³) ‖∇L‖²; it starts either at θ_0 or at the shifted point θ_0 + ηβ/(1 − β)²
    ∇L(θ_0). The study measures the distance of the final weights from the end point of each flow. For small η, each
    distance scales as ηᵖ, and the verdict rests on the `order` p. The order is computed from pairs of consecutive
    learning rates and extrapolated to η = 0 from the three smallest rates. Theory predicts order 1 for gradient flow,
    order 2 for the modified flow from the shifted point, and order 1 without the shift (order 2 at β = 0, where the
    shift vanishes). The modified flow also predicts the distance of gradient descent from gradient flow (`straying`),
    which is plotted but does not affect the verdict.
    """

    inputs: PositiveInt = parameter(3, "Number of inputs.")
    width: PositiveInt = parameter(6, "Number of hidden neurons.")
    samples: PositiveInt = parameter(20, "Number of samples (full batch).")
    momentum: Annotated[float, Interval(ge=0, le=0.99)] = parameter(0.5, "Momentum β (heavy ball).")
    weight_decay: NonNegativeFloat = parameter(0.01, "Weight decay λ, which adds ½ λ‖θ‖² to the loss.")
    duration: PositiveFloat = parameter(2.0, "Training time t/(1 − β), the time of gradient flow on L.")
    largest_ratio: Annotated[float, Interval(gt=0, le=0.25)] = parameter(
        0.2, "Largest value of η (‖H‖ + λ)/(1 − β)², with the initial Hessian H; it must be far below one."
    )
    rates: Annotated[int, Ge(5)] = parameter(6, "Number of learning rates, each half the previous one.")
    seed: Seed = parameter(0, "Seed of the samples, the teacher and the initial weights.")

    reference = Reference.of(
        papers.NEURAL_MECHANICS,
        "Gradient descent deviates from gradient flow at first order in the learning rate, but from gradient flow on "
        "a modified loss only at second order.",
        also="The shifted initial point of runs with momentum follows from the ansatz of arXiv 1906.04285.",
    )
    title = "The modified flow of gradient descent"
    question = "How far is gradient descent from gradient flow, and which flow describes it better?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"\dot\theta = -\nabla \left[ \frac{L}{1 - \beta} + \frac{\eta (1 + \beta)}{4 (1 - \beta)^3} \left\| "
        r"\nabla L \right\|^2 \right]"
    )
    minutes = 0.2
    theory = "modified gradient flow"
    task = "the outputs of a random tanh teacher"
    notes = ("{samples} samples of {inputs} Gaussian inputs, in one batch.", "Squared loss with weight decay.")
    trains = "mlp, tanh, one hidden layer"
    flow = "gradient descent with momentum {momentum:g} and weight decay {weight_decay:g}"
    along = "run"
    axes = ("learning_rate",)
    labelled = {"run": _FLOWS, "learning_rate": "_learning_rates"}
    names = {"run": ("flow", "1"), "order": ("order of convergence in the learning rate", "1")}
    tolerance = curve_tolerance(
        order=(
            0.03,
            "the extrapolation error is of second order in the smallest learning rates; with a wrong term in the "
            "flow, the order would be 1",
        )
    )
    tiny = {"samples": 8, "width": 4, "rates": 5, "largest_ratio": 0.1}

    def trained(self) -> Values:
        """Train at every learning rate and measure the distance of the final weights from the flows."""
        ends, flows, losses = [], self._flows, np.array([])
        for halvings, (rate, steps) in enumerate(zip(self._learning_rates, self._steps, strict=True)):
            run, network = descend(
                self._task,
                self._network,
                Descent(
                    decayed(optax.sgd, np.float64(self.weight_decay), momentum=self.momentum),
                    learning_rate=float(rate),
                    steps=int(steps),
                    save=np.arange(0, steps + 1, 2**halvings),
                ),
                return_networks=True,
            )
            ends.append(np.asarray(ravel_pytree(eqx.filter(network, eqx.is_inexact_array))[0]))
            losses = run["loss"].to_numpy() if halvings == 0 else losses
        distance = np.stack([np.linalg.norm(ends - flow, axis=1) for flow in flows.ends])
        orders = convergence_orders(self._learning_rates, distance.T)
        return {
            "distance": (("run", "learning_rate"), distance),
            "straying": distance[0],
            "order": ("run", 2 * orders[-1] - orders[-2]),
            "loss": ("time", losses),
            "time": ("time", flows.times),
        }

    def exact(self) -> Values:
        """The orders, the distance of the modified flow from gradient flow, and the loss along the modified flow."""
        flows = self._flows
        return {
            "order": ("run", [1.0, 1.0 if self.momentum > 0 else 2.0, 2.0]),
            "straying": np.linalg.norm(flows.ends[2] - flows.ends[0], axis=1),
            "loss": ("time", flows.loss),
            "time": ("time", flows.times),
        }

    @functools.cached_property
    def _task(self) -> Task:
        inputs = np.random.default_rng(self.seed).normal(size=(self.samples, self.inputs))
        widths = (self.inputs, _TEACHER_WIDTH, _OUTPUTS)
        teacher = MLP(widths, activation="tanh", scale=_TEACHER_SCALE, seed=self.seed + 1)
        return Task(inputs, np.asarray(teacher(inputs)), name=self.task)

    @functools.cached_property
    def _network(self) -> MLP:
        return MLP((self.inputs, self.width, _OUTPUTS), activation="tanh", seed=self.seed)

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        """Numbers of steps at which all learning rates reach the same final time."""
        with jax.enable_x64(True):
            network = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), self._network)
            [sharpest] = top_curvatures(self._task.loss, network, 1).curvature
        curvature = float(sharpest) + self.weight_decay
        fewest = self.duration * curvature / ((1 - self.momentum) * self.largest_ratio)
        return max(4, math.ceil(fewest)) * 2 ** np.arange(self.rates)

    @functools.cached_property
    def _learning_rates(self) -> np.ndarray:
        return self.duration * (1 - self.momentum) / self._steps

    @functools.cached_property
    def _flows(self) -> _Flows:
        """The three flows for every learning rate."""
        weights, rest = eqx.partition(self._network, eqx.is_inexact_array)
        start, as_weights = ravel_pytree(jax.tree.map(jnp.asarray, weights))
        x, y = self._task.inputs, self._task.targets

        def loss(theta: Any) -> Any:
            return jnp.mean(jnp.sum((eqx.combine(as_weights(theta), rest)(x) - y) ** 2, axis=1)) / 2

        rates, sgd = self._learning_rates, SGD(1.0, self.momentum, self.weight_decay)
        slope, start = np.asarray(jit(jax.grad(loss))(start)), np.asarray(start)
        shifted = [shifted_start(start, slope, SGD(float(rate), self.momentum, self.weight_decay)) for rate in rates]
        starts = np.stack([*[start] * (1 + len(rates)), *shifted])
        each_rate = np.concatenate([[0.0], rates, rates])
        modified = modified_loss(loss, sgd)

        # The modified loss is linear in the rate and at zero equals the loss of gradient flow, so one program suffices.
        def descended(theta: Any, rate: Any) -> Any:
            plain = (loss(theta) + self.weight_decay / 2 * jnp.sum(theta**2)) / (1 - self.momentum)
            return (1 - rate) * plain + rate * modified(theta)

        slopes = jit(jax.vmap(jax.grad(descended)))
        times = rates[0] * np.arange(self._steps[0] + 1)
        found = solve_ivp(
            lambda _, each: -np.asarray(slopes(each.reshape(starts.shape), each_rate)).ravel(),
            (0.0, times[-1]),
            starts.ravel(),
            method="DOP853",
            t_eval=times,
            rtol=1e-11,
            atol=1e-12,
        )
        self.require(
            found.success,
            "duration",
            "choose a shorter duration",
            problem=f"the solver stopped early ({found.message})",
        )
        paths = found.y.reshape(*starts.shape, -1)
        ends, many = paths[..., -1], len(rates)
        along = jit(jax.vmap(loss))(paths[1 + many].T)
        three = np.stack([np.tile(ends[0], (many, 1)), ends[1 : 1 + many], ends[1 + many :]])
        return _Flows(three, times, np.asarray(along))


class _Flows(NamedTuple):
    """End points of the flows (flow, learning rate, weight), and the modified flow's loss at the largest rate."""

    ends: np.ndarray
    times: np.ndarray
    loss: np.ndarray
