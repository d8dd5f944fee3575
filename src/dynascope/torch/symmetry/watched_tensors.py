"""The parameters in the symmetries of a PyTorch model, and their conversion to arrays."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import torch

from dynascope.symmetry import Charge, charges
from dynascope.symmetry.symmetry_arguments import parameter_paths
from dynascope.torch.modules import unwrapped
from dynascope.validation import require

__all__ = ["WatchedTensors"]


class WatchedTensors:
    """The parameters in the symmetries of a model, and their conversion to arrays.

    Args:
        model: The module, or the tree of tensors in which the symmetries were found.
        symmetries: The symmetries.

    Raises:
        InputError: If the symmetries belong to another model, or contain weights that are not all float32 or all
            float64.

    Attributes:
        watched: The parameters by path.
    """

    def __init__(self, model: Any, symmetries: Sequence[Charge]):
        module = unwrapped(model)
        params = dict(module.named_parameters()) if isinstance(module, torch.nn.Module) else model
        leaves, self._tree = jax.tree_util.tree_flatten_with_path(params)
        wanted = set(parameter_paths(symmetries))
        self._paths = [jax.tree_util.keystr(path) for path, _ in leaves]
        self.watched = {
            path: leaf
            for path, (_, leaf) in zip(self._paths, leaves, strict=True)
            if path in wanted and isinstance(leaf, torch.Tensor)
        }
        missing = sorted(wanted - self.watched.keys())
        require(
            not missing,
            f"the model has no parameter {' or '.join(missing[:3])}",
            argument="model",
            value=missing[:3],
            remedy="give the model in which these symmetries were found",
        )
        kinds = {str(each.dtype) for each in self.watched.values()}
        require(
            kinds in ({"torch.float32"}, {"torch.float64"}),
            f"the symmetries act on parameters of type {' and '.join(sorted(kinds))}",
            argument="model",
            value=sorted(kinds),
            remedy="keep all weights in torch.float32 or all in torch.float64, and use autocast for mixed precision",
        )
        charges(self.arrays(self.watched), symmetries)

    def arrays(self, tensors: Mapping[str, Any]) -> Any:
        """Return the tree of parameters with arrays in place of tensors, on the CPU and without copies."""
        kinds = {path: tensor.dtype for path, tensor in self.watched.items()}
        found = [
            tensors[path].detach().to("cpu", kinds[path]).numpy() if path in kinds else None for path in self._paths
        ]
        return jax.tree.unflatten(self._tree, found)
