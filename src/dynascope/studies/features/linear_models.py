"""Linear models on given features: gradient flow from zero, and fits at the end of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.flows.gradient_flow import GradientFlow, gradient_flow
from dynascope.flows.solvers.solver import Solver
from dynascope.networks import MLP
from dynascope.studies.features.averages import error_of_mean, error_of_median
from dynascope.studies.features.sines import sines
from dynascope.tasks import Task
from dynascope.training.descend import Descent, descend

__all__ = [
    "RidgeFit",
    "averaged",
    "exactly_learned",
    "least_norm",
    "noise_power",
    "ridge_fit",
    "train_all_layers",
    "train_from_zero",
    "train_last_layer",
]

_NOISE_DRAWS = 40


class RidgeFit(NamedTuple):
    """The fit of kernel ridge regression to one training set, averaged over the label noise.

    Attributes:
        test_loss: ½ E(f̂ − f*)², on all inputs.
        training_loss: Half the mean squared error on the noisy labels.
        coefficients: Learned coefficients of the modes, shape (k,).
        learned_fraction: For each mode, the fraction that is learned if this mode is the target, shape (k,).
    """

    test_loss: Any
    training_loss: Any
    coefficients: Float[np.ndarray, " k"]
    learned_fraction: Float[np.ndarray, " k"]


def train_from_zero(features: np.ndarray, labels: np.ndarray, times: np.ndarray, **options: Any) -> xr.Dataset:
    """Train a linear model on features (n, p) and labels (n, c) by gradient flow from zero weights.

    Returns:
        The record of the flow, with `weights` over time, target and feature.

    Example:
        >>> run = train_from_zero(np.eye(2), np.array([[1.0], [2.0]]), np.array([0.0, 100.0]))
        >>> run["weights"][-1].to_numpy().round(6).tolist()
        [[1.0, 2.0]]
    """
    model = MLP((features.shape[1], labels.shape[1]), activation="linear", bias=False)
    run = gradient_flow(
        Task(features, labels, name="points"),
        eqx.tree_at(lambda model: model.weights[0], model, np.zeros_like(model.weights[0])),
        GradientFlow(
            duration=float(times[-1]), save=times, statistics={"weights": (_weights, ("target", "feature"))}, **options
        ),
    )
    return run.transpose("time", "target", "feature")


def train_all_layers(
    network: Any,
    inputs: np.ndarray,
    targets: np.ndarray,
    samples: int,
    *,
    recorded: np.ndarray,
    seed: int,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Train all layers on the first `samples` inputs; return features and outputs on all inputs at recorded steps."""
    run = descend(
        Task(inputs[:samples], targets[:samples]),
        network,
        Descent(
            steps=int(recorded[-1]),
            save=recorded,
            statistics={"features": (_features, ("sample", "feature")), "outputs": (_outputs, ("sample", "target"))},
            # Passed as an argument of the compiled program rather than a constant.
            reference=Task(inputs, targets),
            **options,
        ),
        seed=seed,
    )
    return run["features"].to_numpy(), run["outputs"].to_numpy()


def train_last_layer(network: Any, features: np.ndarray, targets: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Train the last layer by gradient flow on fixed features (n, p); return the outputs (times, n, c).

    Args:
        network: A network with the initial `classifier` and `classifier_bias`.
        features: Features, training samples first.
        targets: Targets of the training samples, shape (m, c).
        times: Increasing times that begin at zero.
    """
    layer = eqx.tree_at(
        lambda layer: (layer.weights, layer.biases),
        MLP(network.classifier.shape),
        ((network.classifier,), (network.classifier_bias,)),
    )
    run = gradient_flow(
        Task(features[: len(targets)], targets),
        layer,
        GradientFlow(
            duration=float(times[-1]),
            solver=Solver(relative_tolerance=1e-10),
            save=times,
            statistics={"classifier": (_classifier, ("feature", "target")), "bias": (_bias, ("target",))},
        ),
    )
    return features @ run["classifier"].to_numpy() + run["bias"].to_numpy()[:, None]


def ridge_fit(
    features: np.ndarray, intensity: np.ndarray, target: np.ndarray, *, ridge: float, noise_variance: float
) -> RidgeFit:
    """Solve kernel ridge regression with the kernel Σ_k ρ_k e_k e_k for one training set.

    Args:
        features: e_k on the samples, shape (n, k).
        intensity: ρ_k, shape (k,).
        target: Coefficients of the target, shape (k,).
        ridge: δ ≥ 0; zero selects the ridgeless limit.
        noise_variance: Variance σ² of the label noise; averages over the noise are exact.

    Example:
        >>> ridge_fit(np.eye(2), np.ones(2), np.ones(2), ridge=1.0, noise_variance=0.0).coefficients
        array([0.5, 0.5])
    """
    n, modes = features.shape
    if n < modes:
        scaled = features * intensity
        gram = scaled @ features.T
        gram[np.diag_indices(n)] += ridge
        estimator = np.linalg.solve(gram, scaled).T
    else:
        gram = features.T @ features
        gram[np.diag_indices(modes)] += ridge / intensity
        estimator = np.linalg.solve(gram, features.T)
    clean = features @ target
    learned = estimator @ clean
    noise = noise_variance * np.sum(estimator**2)
    fitted = np.mean(np.sum((features @ estimator - np.eye(n)) ** 2, axis=1))
    left = np.mean((features @ learned - clean) ** 2) + noise_variance * fitted
    fraction = np.sum(estimator.T * features, axis=0)
    return RidgeFit((np.sum((learned - target) ** 2) + noise) / 2, left / 2, learned, fraction)


def averaged(fits: Sequence[RidgeFit], *, median: bool) -> tuple[RidgeFit, RidgeFit, RidgeFit]:
    """The mean or median of fits to several training sets, its standard error, and the fits' standard deviation.

    Example:
        >>> fits = [RidgeFit(each, each, np.array([each]), np.ones(1)) for each in (1.0, 3.0)]
        >>> [float(each.test_loss) for each in averaged(fits, median=False)]
        [2.0, 1.0, 1.0]
    """
    draws = [np.array(each) for each in zip(*fits, strict=True)]
    middle, error = (np.median, error_of_median) if median else (np.mean, error_of_mean)
    found = ([middle(each, axis=0), error(each), np.std(each, axis=0)] for each in draws)
    means, errors, deviations = zip(*found, strict=True)
    return RidgeFit(*means), RidgeFit(*errors), RidgeFit(*deviations)


def least_norm(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The minimum-norm weights (p, c) that fit labels (n, c) exactly, the limit of gradient flow from zero.

    Example:
        >>> least_norm(np.array([[3.0, 4.0]]), np.array([[5.0]])).ravel().round(6)
        array([0.6, 0.8])
    """
    return features.T @ np.linalg.solve(features @ features.T, labels)


def exactly_learned(features: np.ndarray) -> np.ndarray:
    """For each mode, the fraction ρ_k e_kᵀ K⁻¹ e_k that the minimum-norm fit learns if this mode is the target.

    Args:
        features: √ρ_k e_k, of full rank, with fewer samples than modes, shape (…, n, p).

    Returns:
        Fractions that sum to n, shape (…, p).

    Example:
        >>> exactly_learned(np.array([[3.0, 4.0]])).round(2)
        array([0.36, 0.64])
    """
    # Orthonormal bases of the row spaces are well conditioned even if the kernel is not.
    return np.sum(np.linalg.qr(features.mT)[0] ** 2, axis=-1)


def noise_power(modes: int, samples: int, draw: np.random.Generator) -> float:
    """Median over 40 draws of the mean square of the minimum-norm fit of equally strong sine modes to unit noise.

    Example:
        >>> noise_power(200, 10, np.random.default_rng(0)) < 0.2
        True
    """

    def power() -> float:
        basis, labels = sines(draw.uniform(size=samples), modes), draw.normal(size=samples)
        return float(labels @ np.linalg.solve(basis @ basis.T, labels))

    return float(np.median([power() for _ in range(_NOISE_DRAWS)]))


def _weights(model: MLP) -> Any:
    return model.weights[0].T


def _features(network: Any, inputs: Any, targets: Any) -> Any:
    return network.features(inputs)


def _outputs(network: Any, inputs: Any, targets: Any) -> Any:
    return network(inputs)


def _classifier(model: MLP) -> Any:
    return model.weights[0]


def _bias(model: MLP) -> Any:
    return model.biases[0]
