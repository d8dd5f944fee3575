"""Prunes a network once or in rounds, and finds the highest compression at which it stays connected."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd
from annotated_types import Ge

from dynascope.compilation.frameworks import also_in_pytorch
from dynascope.interventions.jax_network import JaxNetwork
from dynascope.interventions.prunable import Prunable
from dynascope.interventions.pruned import CriticalCompression, Pruned, layer_table
from dynascope.interventions.pruning_scores import NEEDS_DATA, Method, score_of
from dynascope.interventions.rounds import kept_after_each_round, pruned_in_rounds, require_reachable
from dynascope.interventions.synaptic_flow import SynapticFlow
from dynascope.theory.interventions import maximal_compression
from dynascope.validation import require
from dynascope.validation.bounded import PositiveInt, Seed

__all__ = [
    "critical_compression",
    "default_compressions",
    "prune",
    "prune_network",
    "require_data",
    "scan_compressions",
]

Compression = Annotated[float, Ge(1)]
_CONSERVED = 1e-6  # relative; a smaller defect is a rounding error
_NO_SHARE = 1e-12  # of the synaptic flow; a smaller share is a rounding error
_STEP = 0.25  # of log₁₀ ρ
_CALLER = 5  # stack level of the caller, past the decorators


@also_in_pytorch("dynascope.torch.pruning")
def prune(
    network: Any,
    method: Method = "synflow",
    *,
    compression: Compression,
    rounds: PositiveInt | None = None,
    data: Any = None,
    protect: Sequence[str] = (),
    input_shape: Sequence[PositiveInt] | None = None,
    allow_collapse: bool = False,
    seed: Seed = 0,
) -> Pruned:
    """Remove the weights with the lowest scores until a fraction 1/ρ of the weights is left.

    The scores of all layers are compared with each other. Round k of n keeps exactly round(N ρ^(−k/n)) of the N
    weights, and the scores are computed again in every round.

    | method | score S(θ) | data |
    | --- | --- | --- |
    | "synflow" | θ ∂R/∂θ of R = 1ᵀ ∏|θ_l| 1 | none |
    | "snip" | absolute value of θ ∂L/∂θ | needed |
    | "grasp" | θ H ∂L/∂θ, with outputs divided by 200 | needed |
    | "magnitude" | absolute value of θ | none |
    | "random" | independent uniform numbers | none |

    Weights with two or more axes are pruned. Biases, parameters of normalisations and layers in `protect` are neither
    pruned nor counted. Scores are computed in float64 and in evaluation mode. For SynFlow, each parameter is replaced
    by its absolute value, and running means are set to zero. If weights have equal scores, those that come first in the
    network are kept.

    In a network without skip connections and biases, SynFlow conserves R in every layer. With many rounds, every layer
    therefore keeps a weight up to the maximal compression, which leaves one weight per layer. In a residual network,
    the flow through a skip connection bypasses its block. If less flow passes through a block than bypasses it, high
    compressions empty the block (`Pruned.layers["flow_share"]` measures the flow through each layer). With usual
    initial weights, this happens far below the maximal compression. SynFlow also removes the few weights of 1 × 1
    shortcuts early; `protect` keeps them, but the flow through them still bypasses the block.

    Args:
        network: An equinox module that maps a batch or a sample to outputs; or a `torch.nn.Module`, for which the
            function is `dynascope.torch.prune`.
        method: Name of the method.
        compression: ρ ≥ 1, the number of prunable weights divided by the number of kept weights.
        rounds: n; the default is 100 for SynFlow, and 1 for the other methods.
        data: A task, or inputs and targets, for SNIP and GraSP; about ten samples per class. The loss is the
            cross-entropy for integer targets, and ½‖f − y‖² otherwise.
        protect: Names, or parts of names, of layers that are not pruned, such as "shortcut" for
            "blocks.2.shortcut.kernel".
        input_shape: Shape of one sample. The default is the shape of the data, of the images that the network declares,
            or the width of the first matrix.
        allow_collapse: Whether layers may lose all weights.
        seed: Seed of the random scores.

    Returns:
        The mask, the pruned network, and a table with statistics of each layer.

    Raises:
        InputError: If the compression leaves fewer weights than layers, or empties a layer, unless `allow_collapse` is
            set; if a method lacks data, or the data do not fit the network; if `protect` names no layer or all layers;
            if the input shape is unknown; if scores are not finite; or if a PyTorch module has tied or parametrised
            weights, or masks of an earlier pruning.

    Warns:
        UserWarning: If SynFlow is not conserved, because operations are not homogeneous; or if the synaptic flow does
            not depend on a layer, as before a softmax.

    References:
        H. Tanaka et al., arXiv:2006.05467; N. Lee et al., arXiv:1810.02340; C. Wang et al., arXiv:2002.07376.

    Example:
        >>> from dynascope.networks import MLP
        >>> pruned = prune(MLP((8, 20, 20, 3), bias=False), compression=10.0)
        >>> pruned.compression, pruned.layers["kept"].tolist(), pruned.path_exists
        (10.0, [22, 23, 17], True)
    """
    require_data(method, data)
    read = JaxNetwork(network, protect, input_shape, data)
    return prune_network(read, method, compression, rounds, allow_collapse, seed)


@also_in_pytorch("dynascope.torch.pruning")
def critical_compression(
    network: Any,
    method: Method = "synflow",
    *,
    compressions: Sequence[Compression] | None = None,
    rounds: PositiveInt | None = None,
    data: Any = None,
    protect: Sequence[str] = (),
    input_shape: Sequence[PositiveInt] | None = None,
    seed: Seed = 0,
) -> CriticalCompression:
    """Find the highest compression at which a method leaves a weight in every layer.

    The critical compression ρ_cr of a method is at most ρ_max = N/L, which leaves one weight in each of the L layers.

    Args:
        network: As in `prune`.
        method: Name of the method.
        compressions: Increasing compressions; by default, steps of 0.25 in log₁₀ ρ up to ρ_max.
        rounds: As in `prune`.
        data: As in `prune`.
        protect: As in `prune`.
        input_shape: As in `prune`.
        seed: As in `prune`.

    Returns:
        The critical compression for layers and for paths (one if the first compression already fails), ρ_max, and a
        table of all compressions.

    Raises:
        InputError: Under the same conditions as in `prune`, except that layers may lose all weights.

    References:
        H. Tanaka et al., arXiv:2006.05467, section 3.

    Example:
        >>> from dynascope.networks import MLP
        >>> network = MLP((8, 20, 20, 3), bias=False)
        >>> found = critical_compression(network, "synflow")
        >>> found.layers == found.paths == found.maximal, critical_compression(network, "random").layers < 100
        (True, True)
    """
    require_data(method, data)
    return scan_compressions(JaxNetwork(network, protect, input_shape, data), method, compressions, rounds, seed)


def require_data(method: Method, data: Any) -> None:
    """Raise `InputError` if a method that requires data receives none."""
    require(
        data is not None or method not in NEEDS_DATA,
        f"the method {method} requires data",
        argument="data",
        remedy="give inputs and targets, with about ten samples per class",
    )


def prune_network(
    network: Prunable, method: Method, compression: float, rounds: int | None, allow_collapse: bool, seed: int
) -> Pruned:
    """Prune a network of any framework; the arguments are those of `prune`."""
    flow = SynapticFlow(network)
    sizes = [each.size for each in network.weights]
    require_reachable(compression, sizes, allow_collapse)
    names = _named_violations(flow, method)
    if method == "synflow":
        _warn_of_unranked(flow)
    rounds = rounds or _default_rounds(method)
    masks = _masks(flow, method, compression, rounds, seed)
    collapsed = tuple(name for name, mask in zip(network.names, masks, strict=True) if not mask.any())
    require(
        allow_collapse or not collapsed,
        f"{method} with {rounds} round{'s' * (rounds > 1)} removes all weights of {', '.join(collapsed)}",
        argument="compression",
        value=compression,
        remedy="choose a lower compression, more rounds or another method; alternatively, protect these layers, or "
        "pass allow_collapse=True",
    )
    (mask, pruned), remaining = network.result(masks), flow.remaining(masks)
    kept = sum(int(each.sum()) for each in masks)
    return Pruned(
        mask,
        pruned,
        method,
        float(compression),
        sum(sizes) / kept if kept else np.inf,
        rounds,
        layer_table(network, masks, remaining),
        collapsed,
        remaining.path_exists,
        flow.defect,
        names,
    )


def scan_compressions(
    network: Prunable, method: Method, compressions: Sequence[float] | None, rounds: int | None, seed: int
) -> CriticalCompression:
    """Scan the compressions of a network of any framework; the arguments are those of `critical_compression`."""
    flow, rounds = SynapticFlow(network), rounds or _default_rounds(method)
    sizes = [each.size for each in network.weights]
    most = maximal_compression(sizes)
    if compressions is None:
        compressions = default_compressions(most)
    require(
        len(compressions) > 0 and list(compressions) == sorted(compressions),
        f"compressions is {list(compressions)}",
        argument="compressions",
        value=list(compressions),
        remedy="give increasing numbers of at least one",
    )
    rows = []
    for each in compressions:
        masks = _masks(flow, method, each, rounds, seed)
        kept = sum(int(mask.sum()) for mask in masks)
        achieved = sum(sizes) / kept if kept else np.inf
        rows.append((float(each), achieved, sum(not mask.any() for mask in masks), flow.exists(masks)))
    table = pd.DataFrame(rows, columns=["compression", "achieved", "empty_layers", "path_exists"])
    layers = _last_intact(compressions, [empty == 0 for _, _, empty, _ in rows])
    return CriticalCompression(layers, _last_intact(compressions, [exists for *_, exists in rows]), most, table)


def default_compressions(most: float) -> list[float]:
    """Compressions up to ρ_max in equal steps of log ρ.

    Example:
        >>> [round(each, 3) for each in default_compressions(5.0)]
        [1.778, 3.162, 5.0]
    """
    return [*(10 ** np.arange(_STEP, np.log10(most), _STEP)).tolist(), most]


def _last_intact(compressions: Sequence[float], intact: Sequence[bool]) -> float:
    """The last compression before the first failure, or one."""
    reached = itertools.takewhile(lambda pair: pair[1], zip(compressions, intact, strict=True))
    return float(max((compression for compression, _ in reached), default=1.0))


def _warn_of_unranked(flow: SynapticFlow) -> None:
    """Warn about layers whose scores are zero up to rounding errors."""
    names = [name for name, share in zip(flow.network.names, flow.shares, strict=True) if abs(share) < _NO_SHARE]
    if names:
        warnings.warn(
            f"prune: the synaptic flow does not depend on {', '.join(names)}, so SynFlow cannot rank these weights; "
            "remove a softmax after the last layer, or protect these layers",
            stacklevel=_CALLER,
        )


def _masks(flow: SynapticFlow, method: Method, compression: float, rounds: int, seed: int) -> list[np.ndarray]:
    network = flow.network
    kept = kept_after_each_round(sum(each.size for each in network.weights), compression, rounds)
    score = score_of(method, network, seed, flow)
    return pruned_in_rounds(score, [each.shape for each in network.weights], kept)


def _default_rounds(method: Method) -> int:
    return 100 if method == "synflow" else 1


def _named_violations(flow: SynapticFlow, method: Method) -> tuple[str, ...]:
    """Names of operations that violate conservation, with a warning if the method relies on conservation."""
    if flow.defect <= _CONSERVED:
        return ()
    names = flow.network.inhomogeneous() or ("an unknown operation",)
    if method == "synflow":
        warnings.warn(
            f"prune: operations of the network are not homogeneous ({', '.join(names)}), so SynFlow violates "
            f"conservation by {flow.defect:.1%}, and layers may collapse",
            stacklevel=_CALLER,
        )
    return names
