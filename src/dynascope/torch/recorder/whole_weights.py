"""Rejects modules whose weights are sharded over several processes."""
# pyright: reportMissingImports=false

from __future__ import annotations

from torch import nn

from dynascope.validation import require

__all__ = ["require_whole_weights"]


def require_whole_weights(module: nn.Module) -> None:
    """Raise `InputError` if the weights are sharded over several processes."""
    sharded = [
        name
        for name, each in module.named_parameters()
        if type(each).__name__ == "DTensor" or (type(each.data).__name__ == "DTensor")
    ]
    wrapped = any(type(each).__name__ == "FullyShardedDataParallel" for each in module.modules())
    require(
        not sharded and not wrapped,
        "the weights of model are sharded over several processes",
        argument="model",
        value=type(module).__name__,
        remedy="record a model that is replicated in every process, as with DistributedDataParallel",
    )
