"""The gradient noise scale, from the gradients of the micro-batches of an accumulated step."""

from __future__ import annotations

from typing import Any

from dynascope.diagnosis.probe import Probe, ProbeCost
from dynascope.diagnosis.snapshot import MicroBatches, Snapshot

__all__ = ["NOISE_SCALE", "measure_noise_scale", "noise_scale"]


def measure_noise_scale(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the gradient noise scale of the last step; NaN if the step had fewer than two micro-batches."""
    nan = float("nan")
    if snapshot.micro_batches is None or len(snapshot.micro_batches.squares) < 2:
        values = {"gradient_signal": nan, "gradient_noise": nan, "gradient_noise_scale": nan}
    else:
        values = noise_scale(snapshot.micro_batches)
    return {name: ([], value) for name, value in values.items()}


def noise_scale(batches: MicroBatches) -> dict[str, float]:
    """Estimate the gradient noise scale B = tr Σ/‖∇L‖².

    Σ is the covariance of the gradient of one example. With k micro-batches of b examples and their gradients g_i with
    mean ḡ, the unbiased estimates are

        tr Σ = b (mean ‖g_i‖² − ‖ḡ‖²) k/(k − 1),   ‖∇L‖² = ‖ḡ‖² − tr Σ/(k b).

    One step gives a noisy estimate. Average the signal and the noise over steps before you divide them. The scale is
    NaN if the estimated signal is not positive.

    Args:
        batches: The squared norms of the gradients.

    Returns:
        The signal ‖∇L‖², the noise tr Σ and their ratio.

    References:
        McCandlish et al., An empirical model of large-batch training, arXiv:1812.06162, appendix A.1.

    Example:
        >>> found = noise_scale(MicroBatches(squares=(3.0, 1.0), mean_square=1.5, size=10))
        >>> found["gradient_signal"], found["gradient_noise"], found["gradient_noise_scale"]
        (1.0, 10.0, 10.0)
    """
    count = len(batches.squares)
    mean = sum(batches.squares) / count
    noise = batches.size * (mean - batches.mean_square) * count / (count - 1)
    signal = batches.mean_square - noise / (count * batches.size)
    return {
        "gradient_signal": signal,
        "gradient_noise": noise,
        "gradient_noise_scale": noise / signal if signal > 0 else float("nan"),
    }


NOISE_SCALE = Probe(
    name="noise_scale",
    description="Gradient noise scale, if gradients are accumulated over micro-batches.",
    needs=("micro_batches",),
    measure=measure_noise_scale,
    cost=lambda sizes: ProbeCost(4.0 * sizes.parameters, 2.0 * sizes.parameters * sizes.itemsize),
    names={
        "gradient_signal": ("squared norm of the mean gradient, estimated", "1"),
        "gradient_noise": ("trace of the covariance of the gradient of one example", "1"),
        "gradient_noise_scale": ("gradient noise scale", "examples"),
    },
)
