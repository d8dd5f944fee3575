"""Gradient flow of linear autoencoders from small and from standard initial weights, and the theory of its saddles."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from dynascope.comparison import Claim, claim_on_mean
from dynascope.flows import GradientFlow, Solver, gradient_flow
from dynascope.networks import DeepLinear
from dynascope.results.steps_seen import crossing_times
from dynascope.studies import Values
from dynascope.studies.interventions.linear_autoencoder.hessian import hessian_spectrum
from dynascope.theory.interventions import (
    autoencoder_hessian_spectrum,
    autoencoder_imbalance,
    autoencoder_ladder,
    autoencoder_loss,
    autoencoder_path,
    autoencoder_rates,
    transposition_residual,
)

if TYPE_CHECKING:
    from dynascope.studies.interventions.linear_autoencoder.study import LinearAutoencoder

__all__ = ["PENALTIES", "Experiment", "Reconstruction"]

PENALTIES = ("none", "product", "weights")
_RECOVERED, _LOST = 0.999, 0.95  # |cos| of the worst direction
_CONVERGED = 30.0  # time constants of the slowest rate with weight decay
_LONGEST = 300.0  # the same for the other losses, whose rates depend on the conserved imbalance and can be small
_STATIONARY = 1e-8  # gradient norm at which training from standard weights ends
_LAYERS = ("encoder", "decoder")
_PLANE = 0.3  # λ of the autoencoder with one input of unit variance and one latent
_FARTHEST = 2.0  # largest weight in the plane


class Reconstruction(eqx.Module):
    """Loss ‖X − X A B‖² + λ ‖A B‖² + μ (‖A‖² + ‖B‖²) of a linear network with the layers A and B.

    Attributes:
        moment: XᵀX, shape (inputs, inputs).
        in_product: λ.
        in_weights: μ.
    """

    moment: Any
    in_product: Any
    in_weights: Any

    def loss(self, network: Any) -> Any:
        """Evaluate the loss."""
        encoder, decoder = network.weights
        product = encoder @ decoder
        error = product - jnp.eye(len(product))
        return (
            jnp.sum(error * (self.moment @ error))
            + self.in_product * jnp.sum(product**2)
            + self.in_weights * (jnp.sum(encoder**2) + jnp.sum(decoder**2))
        )

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the task in records."""
        return {"task": "reconstruction"}


class Experiment:
    """Trains the autoencoders of a study, and predicts their trajectories and critical points.

    Attributes:
        study: The study, whose fields are the settings.
        sigma: Singular values of the data.
        directions: Principal directions as columns, shape (inputs, inputs).
        losses: λ and the penalised quantity of each loss.
    """

    def __init__(self, study: LinearAutoencoder):
        self.study = study
        self.sigma = np.asarray(study.singular_values, float)
        draw = np.random.default_rng([study.seed, 0])
        self.directions, _ = np.linalg.qr(draw.normal(size=2 * [len(self.sigma)]))
        self.losses: list[tuple[float, Any]] = [
            (0.0, "weights"),
            (study.regularization, "product"),
            (study.regularization, "weights"),
        ]

    @functools.cached_property
    def data(self) -> np.ndarray:
        """X with the given singular values and directions; only XᵀX matters."""
        return self.sigma[:, None] * self.directions.T

    @functools.cached_property
    def networks(self) -> list[DeepLinear]:
        """Random initial layers A and B."""
        inputs, study = len(self.sigma), self.study
        return [DeepLinear((inputs, study.latents, inputs), seed=study.seed + i) for i in range(study.starts)]

    @functools.cached_property
    def initial(self) -> np.ndarray:
        """Initial amplitude c of each direction from small weights: rows of Vᵀ(A + Bᵀ)/2, orthogonalised in order."""
        encoder, decoder = self.networks[0].weights
        rows = self.directions[:, : self.study.latents].T @ (encoder + decoder.T) / 2
        return self.study.scale * np.abs(np.linalg.qr(rows.T)[1].diagonal())

    @functools.cached_property
    def times(self) -> np.ndarray:
        """Times until long after the last direction is learned from small weights under the slowest loss."""
        rate = self.ladders[-1].escape_rate[-1]
        last = np.log(1 / self.initial[-1]) / rate
        return np.linspace(0, 1.1 * last + 5 / rate, self.study.times)

    @functools.cached_property
    def convergence_times(self) -> np.ndarray:
        """Times until convergence from standard weights with weight decay, and a last time for the other losses."""
        slowest = autoencoder_rates(self.sigma, self.study.latents, self.study.regularization).slowest
        return np.append(np.linspace(0, _CONVERGED / slowest, self.study.times - 1), _LONGEST / slowest)

    @functools.cached_property
    def ladders(self) -> list[Any]:
        """Saddles visited from small weights under each loss."""
        return [autoencoder_ladder(self.sigma, self.study.latents, *each) for each in self.losses]

    def trained(self) -> Values:
        """Train from small weights, from standard weights, and in the plane of two weights."""
        return {**self._small(), **self._ordinary(), **self._plane()}

    def exact(self) -> Values:
        """Losses over time and at the saddles, Hessian spectra, imbalance, and final singular values."""
        study, latents = self.study, self.study.latents
        paths = [autoencoder_path(self.times, self.sigma, self.initial, *each) for each in self.losses]
        decays = [weight if penalty == "weights" else 0.0 for weight, penalty in self.losses]
        imbalances = [_imbalance(*map(np.asarray, network.weights)) for network in self.networks]
        minima = np.array([each.loss[-1] for each in self.ladders])
        strength = np.sqrt(1 - study.regularization / self.sigma[:latents] ** 2)
        spectra = [
            autoencoder_hessian_spectrum(self.sigma, range(size), latents, study.regularization)
            for size in range(latents + 1)
        ]
        return {
            "loss": (("penalty", "time"), [each.loss for each in paths]),
            "ladder_loss": (("penalty", "time"), list(map(_steps, paths, self.ladders))),
            "saddle_loss": (("penalty", "level"), [each.loss for each in self.ladders]),
            "saddle_hessian": (("level", "eigenvalue"), spectra),
            "imbalance": (
                ("penalty", "seed", "convergence_time"),
                [
                    [_norms(autoencoder_imbalance(each, self.convergence_times, decay)) for each in imbalances]
                    for decay in decays
                ],
            ),
            "decoder_strength": (("seed", "mode"), np.tile(strength, (study.starts, 1))),
            "transposition": ("seed", np.ones(study.starts)),
            "final_loss": (("penalty", "seed"), np.tile(minima[:, None], study.starts)),
            **self._critical_sets(),
        }

    def claimed(self, found: Values) -> Sequence[Claim]:
        """Claims about which losses recover the principal directions from standard weights."""
        none, product, weights = found["direction_overlap"][1]
        return [
            claim_on_mean(
                "weight decay recovers",
                f"With weight decay, the smallest |cos| between a singular vector and the corresponding principal "
                f"direction is at least {_RECOVERED} on average.",
                weights,
                least=_RECOVERED,
            ),
            *(
                claim_on_mean(
                    f"{name} does not recover",
                    f"With {words}, the smallest |cos| between a singular vector and the corresponding principal "
                    f"direction is at most {_LOST} on average.",
                    overlaps,
                    most=_LOST,
                )
                for name, words, overlaps in (
                    ("no penalty", "no penalty", none),
                    ("product penalty", "a penalty on the product", product),
                )
            ),
        ]

    def _small(self) -> dict[str, Any]:
        """Losses from small weights, and losses and Hessian spectra at the points closest to the saddles."""
        runs = [self._train(self.networks[0], self.times, *each, scale=self.study.scale) for each in self.losses]
        saddles, spectra = [], []
        for run, ladder, rest in zip(runs, self.ladders, self.losses, strict=True):
            layers = list(zip(run["encoder"].to_numpy(), run["decoder"].to_numpy(), strict=True))
            found = [autoencoder_loss(self.data, *each, *rest) for each in layers]
            slope = _norms(np.array([np.hstack([each.encoder_gradient, each.decoder_gradient.T]) for each in found]))
            middles = (ladder.loss[1:] + ladder.loss[:-1]) / 2
            jumps = np.searchsorted(self.times, crossing_times(self.times, run["loss"].to_numpy(), middles))
            ranges = np.split(np.arange(len(self.times)), jumps)
            nearest = [int(each[np.argmin(slope[each])]) for each in ranges]
            saddles.append([found[each].value for each in nearest])
            spectra = [hessian_spectrum(self._task(*rest), *layers[each]) for each in nearest]
        return {
            "loss": (("penalty", "time"), [each["loss"].to_numpy() for each in runs]),
            "saddle_loss": (("penalty", "level"), saddles),
            "saddle_hessian": (("level", "eigenvalue"), spectra),  # of the last loss, with weight decay
            "small_direction_overlap": ("penalty", self._overlap([each["decoder"][-1] for each in runs])),
        }

    def _ordinary(self) -> dict[str, Any]:
        """Imbalance, final losses and recovered directions from standard weights."""
        runs = [self._train(self.networks, self.convergence_times, *each) for each in self.losses]
        imbalance = [_norms(_imbalance(each["encoder"].to_numpy(), each["decoder"].to_numpy())) for each in runs]
        ends = [each.isel(time=-1) for each in runs]
        decoders = np.array([each["decoder"].to_numpy() for each in ends])
        pairs = zip(ends[-1]["encoder"].to_numpy(), decoders[-1], strict=True)
        return {
            "imbalance": (("penalty", "seed", "convergence_time"), imbalance),
            "decoder_strength": (("seed", "mode"), np.linalg.svd(decoders[-1], compute_uv=False)),
            "transposition": ("seed", [1 - transposition_residual(*each) ** 2 for each in pairs]),
            "final_loss": (("penalty", "seed"), [each["loss"].to_numpy() for each in ends]),
            "direction_overlap": (("penalty", "seed"), self._overlap(decoders)),
        }

    def _plane(self) -> dict[str, Any]:
        """Trajectories of the two weights of an autoencoder with one input and one latent."""
        angles = 2 * np.pi * (np.arange(16) + 0.25) / 16  # off the diagonals, on which saddles are reached
        starts = [_scalar(_FARTHEST * np.cos(each), _FARTHEST * np.sin(each)) for each in angles]
        times = np.append(0, np.geomspace(1e-3, 30, self.study.times - 1))
        losses = [(weight and _PLANE, penalty) for weight, penalty in self.losses]
        runs = [self._train(starts, times, *each, moment=np.eye(1)) for each in losses]
        encoder, decoder = (np.array([each[name].to_numpy()[..., 0, 0] for each in runs]) for name in _LAYERS)
        axes = ("plane_time", "penalty", "start")
        return {
            "plane_time": ("plane_time", times),
            "encoder_weight": (axes, np.moveaxis(encoder, -1, 0)),
            "decoder_weight": (axes, np.moveaxis(decoder, -1, 0)),
        }

    def _overlap(self, decoders: Any) -> np.ndarray:
        """Smallest |cos| between a right singular vector of each decoder and the corresponding principal direction."""
        _, _, rows = np.linalg.svd(np.asarray(decoders), full_matrices=False)
        return np.abs(np.einsum("...ki,ik->...k", rows, self.directions[:, : self.study.latents])).min(axis=-1)

    def _critical_sets(self) -> dict[str, Any]:
        """Minima in the plane of two weights; with weight decay, the line that joins both minima through the saddle."""
        a, end = np.geomspace(1 / _FARTHEST, _FARTHEST, self.study.times), np.sqrt(1 - _PLANE)
        line = np.linspace(-end, end, len(a))
        encoder = np.array([[-a, a], [-a, a], [line, line]])
        decoder = np.array([[-1 / a, 1 / a], [-1 / a, 1 / a], [line, line]])
        decoder[1] /= 1 + _PLANE
        axes = ("manifold_point", "penalty", "branch")
        return {
            "encoder_weight": (axes, np.moveaxis(encoder, -1, 0)),
            "decoder_weight": (axes, np.moveaxis(decoder, -1, 0)),
        }

    def _task(self, regularization: float, penalty: str, moment: np.ndarray | None = None) -> Reconstruction:
        in_weights = regularization if penalty == "weights" else 0.0
        moment = self.data.T @ self.data if moment is None else moment
        return Reconstruction(moment, np.asarray(regularization - in_weights), np.asarray(in_weights))

    def _train(
        self,
        networks: Any,
        times: np.ndarray,
        regularization: float,
        penalty: str,
        *,
        scale: float = 1.0,
        moment: np.ndarray | None = None,
    ) -> Any:
        method = GradientFlow(
            duration=float(times[-1]),
            save=times,
            solver=Solver(relative_tolerance=1e-10, absolute_tolerance=1e-10 * scale),
            stationarity=_STATIONARY if scale == 1.0 else None,
            statistics={"encoder": (_encoder, ("input", "latent")), "decoder": (_decoder, ("latent", "input"))},
        )
        return gradient_flow(self._task(regularization, penalty, moment), networks, method, scale=scale)


def _steps(path: Any, ladder: Any) -> np.ndarray:
    """Loss of the last visited saddle at each time; a direction counts as learned at half its final strength."""
    learned = path.strength >= path.strength[-1] / 2
    return ladder.loss[learned.sum(axis=1)]


def _encoder(network: DeepLinear) -> Any:
    return network.weights[0]


def _decoder(network: DeepLinear) -> Any:
    return network.weights[1]


def _scalar(encoder: float, decoder: float) -> DeepLinear:
    layers = np.array([[encoder]]), np.array([[decoder]])
    return eqx.tree_at(lambda network: network.weights, DeepLinear((1, 1, 1)), layers)


def _imbalance(encoder: np.ndarray, decoder: np.ndarray) -> np.ndarray:
    """AᵀA − BBᵀ."""
    return np.swapaxes(encoder, -1, -2) @ encoder - decoder @ np.swapaxes(decoder, -1, -2)


def _norms(matrices: np.ndarray) -> np.ndarray:
    return np.linalg.norm(matrices, axis=(-2, -1))
