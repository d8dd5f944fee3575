"""Conservation of synaptic saliency, its exact violations, and the compression that it allows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from annotated_types import Ge, MinLen
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.validation import checked, require, require_shape
from dynascope.validation.bounded import FiniteFloat, FiniteNumbers, PositiveInt, PositiveNumbers

__all__ = [
    "activation_defect",
    "cut_residuals",
    "grasp_defect",
    "maximal_compression",
    "mean_layer_score",
    "normalisation_defect",
]

_REFERENCE = "arXiv:2006.05467"
_covers = functools.partial(covers, data="any", start="any", reference=_REFERENCE)


@_covers(
    network="homogeneous activations, residual or sequential",
    gives="the difference between every cut and the total saliency, zero",
)
def cut_residuals(
    weight_sums: FiniteNumbers, bias_sums: FiniteNumbers, total: FiniteFloat
) -> Float[np.ndarray, " cuts"]:
    """Differences between the synaptic saliency of each cut and the total saliency.

        Σ_{w ∈ C_l} S(w) + Σ_{j ≥ l} Σ S(b_j) − ⟨∂R/∂y, y⟩,   S(θ) = θ ∂R/∂θ

    The cut C_l consists of the weights of layer l and of the skip connections parallel to it. A skip connection without
    weights counts as a multiplier s = 1 with saliency ⟨∂R/∂h, h⟩. A bias is an edge from a constant source, so the
    biases of all layers at or after the cut belong to it. The differences vanish for every scalar function R of the
    outputs y if all activations satisfy φ(z) = φ'(z) z, such as ReLU, leaky ReLU, max pooling and mean pooling. Batch
    normalisation in evaluation mode conserves the saliency, with S(γ) + S(β) in place of S(W).

    Args:
        weight_sums: Sum of S over each cut, from the inputs to the outputs, shape (cuts,).
        bias_sums: Sum of S over the biases of each layer, shape (cuts,); zeros without biases.
        total: ⟨∂R/∂y, y⟩.

    Raises:
        InputError: If the shapes differ.

    References:
        H. Tanaka et al., arXiv:2006.05467, theorem 2.

    Example:
        >>> cut_residuals([13.0, 18.0], [5.0, 2.0], 20.0)
        array([0., 0.])
    """
    weights, biases = np.asarray(weight_sums), np.asarray(bias_sums)
    require_shape("weight_sums", weights, (None,))
    require_shape("bias_sums", biases, weights.shape)
    return weights + np.cumsum(biases[::-1])[::-1] - total


@_covers(network="homogeneous activations", gives="the exact violation of conservation by the scores of GraSP")
def grasp_defect(incoming_gradient: FiniteNumbers, outgoing_gradient: FiniteNumbers) -> Float[np.ndarray, " units"]:
    """Violation of the neuron-wise conservation of synaptic saliency by GraSP scores.

        Σ_in S − Σ_out S = ‖g_out‖² − ‖g_in‖²,   S = θ ⊙ H g,  g = ∇L,  H = ∇²L

    The first sum runs over the incoming weights and the bias of a unit, and the second sum over its outgoing weights.
    GraSP scores are the synaptic saliency of R = ½ ‖∇L‖², which is not a function of the outputs alone and changes
    under the rescaling (θ_in, θ_out) → (c θ_in, θ_out/c) that leaves L unchanged.

    Args:
        incoming_gradient: Gradients g of the incoming weights and of the bias, shape (units, incoming).
        outgoing_gradient: Gradients g of the outgoing weights, shape (units, outgoing).

    Raises:
        InputError: If the numbers of units differ.

    References:
        C. Wang, G. Zhang, R. Grosse, arXiv:2002.07376, defines the scores.

    Example:
        >>> grasp_defect([[1.0, 2.0]], [[3.0]])
        array([4.])
    """
    incoming, outgoing = np.asarray(incoming_gradient), np.asarray(outgoing_gradient)
    require_shape("incoming_gradient", incoming, (None, None))
    require_shape("outgoing_gradient", outgoing, (len(incoming), None))
    return np.sum(outgoing**2, axis=1) - np.sum(incoming**2, axis=1)


@_covers(network="any activation", gives="the exact violation of conservation by activations")
def activation_defect(
    activation_gradient: FiniteNumbers, preactivation: FiniteNumbers, activation: FiniteNumbers, slope: FiniteNumbers
) -> Float[np.ndarray, " units"]:
    """Violation of the neuron-wise conservation of synaptic saliency by an activation that is not homogeneous.

        Σ_in S − Σ_out S = Σ_samples g (φ'(z) z − φ(z)),   g = ∂R/∂φ(z)

    Args:
        activation_gradient: g, shape (samples, units).
        preactivation: z, shape (samples, units).
        activation: φ(z), shape (samples, units).
        slope: φ'(z), shape (samples, units).

    Raises:
        InputError: If the shapes differ.

    References:
        H. Tanaka et al., arXiv:2006.05467, proof of theorem 1, without the assumption φ(z) = φ'(z) z.

    Example:
        >>> activation_defect([[2.0]], [[3.0]], [[9.0]], [[6.0]])  # φ(z) = z²
        array([18.])
    """
    g, z, value, derivative = map(np.asarray, (activation_gradient, preactivation, activation, slope))
    require_shape("activation_gradient", g, (None, None))
    for name, each in (("preactivation", z), ("activation", value), ("slope", derivative)):
        require_shape(name, each, g.shape)
    return np.sum(g * (derivative * z - value), axis=0)


@_covers(
    network="batch normalisation in evaluation mode",
    gives="the exact violation of conservation by running means",
)
def normalisation_defect(
    output_gradient: FiniteNumbers,
    gain: FiniteNumbers,
    running_mean: FiniteNumbers,
    running_variance: PositiveNumbers,
    epsilon: Annotated[float, Ge(0)] = 0.0,
) -> Float[np.ndarray, " channels"]:
    """Violation of the conservation of saliency between a layer and its batch normalisation in evaluation mode.

        S(W) + S(b) − S(γ) = Σ_positions g γ μ/√(v + ε),   u = γ (z − μ)/√(v + ε) + β,  g = ∂R/∂u

    Conservation holds exactly if the running mean μ is zero. The saliencies of γ and β always sum to the saliency of
    the outgoing weights.

    Args:
        output_gradient: g summed over samples and pixels, shape (channels,).
        gain: γ, shape (channels,).
        running_mean: μ, shape (channels,).
        running_variance: v > 0, shape (channels,).
        epsilon: ε ≥ 0.

    Raises:
        InputError: If the shapes differ.

    References:
        H. Tanaka et al., arXiv:2006.05467; the defect follows from z = (u − β) √(v + ε)/γ + μ.

    Example:
        >>> normalisation_defect([2.0, 1.0], [1.0, 1.0], [0.5, 0.0], [4.0, 1.0])
        array([0.5, 0. ])
    """
    g, gamma, mean, variance = map(np.asarray, (output_gradient, gain, running_mean, running_variance))
    require_shape("output_gradient", g, (None,))
    for name, value in (("gain", gamma), ("running_mean", mean), ("running_variance", variance)):
        require_shape(name, value, g.shape)
    return g * gamma * mean / np.sqrt(variance + epsilon)


@_covers(network="homogeneous activations, without biases", gives="the mean score of each layer")
def mean_layer_score(total: FiniteFloat, sizes: PositiveNumbers) -> Float[np.ndarray, " layers"]:
    """Mean score of the weights of each layer, for a score whose sum is the same in every layer.

        mean of S over layer l = R/N_l

    All layers have the same sum R, so weights of large layers have small scores. Pruning once by a global threshold
    therefore empties the largest layer first. Pruning in rounds avoids this collapse, because the scores of a layer
    grow when it loses weights.

    Args:
        total: R, the sum of the scores of each layer.
        sizes: N_l, the number of weights of each layer, shape (layers,).

    References:
        H. Tanaka et al., arXiv:2006.05467, section 5.

    Example:
        >>> mean_layer_score(12.0, [6, 3])
        array([2., 4.])
    """
    return float(total) / np.asarray(sizes, np.float64)


@checked
def maximal_compression(sizes: Annotated[Sequence[PositiveInt], MinLen(1)]) -> float:
    """Largest compression ratio at which every layer can keep at least one weight.

        ρ_max = N/L

    Args:
        sizes: Number of weights of each of the L layers; they sum to N.

    References:
        H. Tanaka et al., arXiv:2006.05467, section 3.

    Example:
        >>> maximal_compression([6400, 10000, 3000, 3000, 1000])
        4680.0
    """
    counts = np.asarray(sizes)
    require(counts.ndim == 1, "sizes is not a list", argument="sizes", remedy="give one number per layer")
    return float(counts.sum() / counts.size)
