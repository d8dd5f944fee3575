"""What the command line says of a predicted loss curve to people: when it has fallen how far, and a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynascope import record
from dynascope.cli.console import print_heading, print_judged, print_table
from dynascope.record.steps_seen import crossing_times

if TYPE_CHECKING:
    import xarray as xr

    from dynascope.record.tree_view import Tree

__all__ = ["print_curve"]

_SHARES = (0.1, 0.5, 0.9, 0.99)


def print_curve(tree: Tree) -> None:
    """The times at which the loss has fallen by given shares of its whole fall, and the verdict."""
    view = record.TreeView.of(tree)
    assert view.predicted is not None
    print_heading(view.predicted.attrs)
    rows = _rows(view.predicted, view.observed)
    header = ["fallen by", "loss", "predicted time", *(["observed time"] if view.observed is not None else [])]
    print_table(header, rows)
    print()
    print_judged(view)


def _rows(predicted: xr.Dataset, observed: xr.Dataset | None) -> list[list[str]]:
    loss = predicted["loss"].to_numpy()
    levels = loss[0] - np.array(_SHARES) * (loss[0] - loss[-1])
    columns = [
        crossing_times(each["time"].to_numpy(), each["loss"].to_numpy(), levels)
        for each in (predicted, observed)
        if each is not None
    ]
    return [
        [f"{100 * share:g} %", f"{level:.4g}", *("–" if np.isnan(time) else f"{time:.4g}" for time in times)]
        for share, level, *times in zip(_SHARES, levels, *columns, strict=True)
    ]
