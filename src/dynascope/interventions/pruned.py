"""Results of pruning: masks, and statistics of the pruned network."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from dynascope.interventions.prunable import Prunable
from dynascope.interventions.synaptic_flow import Remaining
from dynascope.results.named_tuples import short_repr

__all__ = ["CriticalCompression", "Pruned", "layer_table"]


@dataclasses.dataclass(frozen=True, eq=False)
class Pruned:
    """A pruned network, with statistics of its layers.

    Attributes:
        mask: The masks. For a JAX network, a tree with the structure of its floating-point arrays, whose leaves are
            boolean arrays; arrays that are not pruned are True everywhere. For a PyTorch module, {name of a parameter:
            tensor of zeros and ones}, as `torch.nn.utils.prune.custom_from_mask` expects them.
        network: The network with pruned weights set to zero; None for a PyTorch module.
        method: Name of the method.
        requested: The requested compression.
        compression: The achieved compression ρ, the number of prunable weights divided by the number of kept weights;
            infinite if none is kept.
        rounds: Number of rounds.
        layers: A table with one row per pruned layer: `size` and `kept` weights, `dead_units` (output units without a
            path from an input to an output), and `flow_share`, the sum of the SynFlow scores of the layer divided by
            the synaptic flow. The share is one if all flow passes through the layer, as in every network without skip
            connections and biases.
        collapsed_layers: Names of layers without weights.
        path_exists: Whether a path from the inputs to the outputs remains.
        conservation_defect: Relative difference between the synaptic flow at the outputs and at the inputs and biases,
            of the network before pruning; zero up to rounding if all activations are homogeneous.
        inhomogeneous: Names of operations that are not homogeneous, and therefore violate conservation.
    """

    mask: Any = dataclasses.field(repr=False)
    network: Any = dataclasses.field(repr=False)
    method: str
    requested: float
    compression: float
    rounds: int
    layers: pd.DataFrame
    collapsed_layers: tuple[str, ...]
    path_exists: bool
    conservation_defect: float
    inhomogeneous: tuple[str, ...]

    __repr__ = short_repr

    @property
    def residuals(self) -> Float[np.ndarray, " layers"]:
        """`flow_share` − 1 of each layer after pruning: the violation of conservation, if the layer is a cut."""
        return np.asarray(self.layers["flow_share"]) - 1


class CriticalCompression(NamedTuple):
    """The largest compressions at which a method keeps a network connected.

    Attributes:
        layers: The largest scanned compression up to which every layer keeps a weight.
        paths: The largest scanned compression up to which a path from the inputs to the outputs exists.
        maximal: ρ_max, the number of prunable weights divided by the number of layers.
        table: One row per scanned compression: `compression`, `achieved`, `empty_layers`, `path_exists`.
    """

    layers: float
    paths: float
    maximal: float
    table: pd.DataFrame

    __repr__ = short_repr


def layer_table(network: Prunable, masks: list[np.ndarray], remaining: Remaining) -> pd.DataFrame:
    """The table `Pruned.layers`."""
    dead = []
    for connected, axis in zip(remaining.connected, network.unit_axes, strict=True):
        others = tuple(each for each in range(connected.ndim) if each != axis % connected.ndim)
        dead.append(int(np.sum(~connected.any(axis=others))))
    columns = {
        "size": [each.size for each in masks],
        "kept": [int(each.sum()) for each in masks],
        "dead_units": dead,
        "flow_share": remaining.shares,
    }
    return pd.DataFrame(columns, index=pd.Index(network.names, name="layer"))
