"""Terminal output of a predicted loss curve: a table of its decrease over time, and the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynascope import results
from dynascope.cli.terminal import print_heading, print_table, print_text, print_warnings_and_verdict
from dynascope.results.steps_seen import crossing_times

if TYPE_CHECKING:
    import xarray as xr

    from dynascope.results.tree import AnyResult

__all__ = ["print_curve"]

_CLOCKS = {"step": "training_step", "epoch": "training_epoch"}  # present if a learning rate was given
_SHARES = (0.1, 0.5, 0.9, 0.99)


def print_curve(tree: AnyResult) -> None:
    """Print the times at which the loss has completed given fractions of its total decrease, and the verdict."""
    view = results.from_tree(tree)
    assert view.predicted is not None
    print_heading(view.predicted.attrs)
    rows = _rows(view.predicted, view.observed)
    steps = [f"predicted {name}" for name, variable in _CLOCKS.items() if variable in view.predicted]
    header = ["completed decrease", "loss", "predicted time", *steps]
    print_table([*header, *(["observed time"] if view.observed is not None else [])], rows)
    loss, time = view.predicted["loss"].to_numpy(), view.predicted["time"].to_numpy()
    print_text(
        f"The total decrease is the difference between the initial loss, {loss[0]:.4g}, and the last predicted loss, "
        f"{loss[-1]:.4g} at time {time[-1]:.4g}.",
        indent="",
    )
    if steps:
        print_text(f"Steps are training steps {view.predicted.attrs['steps']}.", indent="")
    print()
    print_warnings_and_verdict(view)


def _rows(predicted: xr.Dataset, observed: xr.Dataset | None) -> list[list[str]]:
    loss = predicted["loss"].to_numpy()
    levels = loss[0] - np.array(_SHARES) * (loss[0] - loss[-1])
    clocks = ["time", *(variable for variable in _CLOCKS.values() if variable in predicted)]
    curves = [(predicted[clock], predicted["loss"]) for clock in clocks]
    curves += [(observed["time"], observed["loss"])] if observed is not None else []
    columns = [crossing_times(clock.to_numpy(), values.to_numpy(), levels) for clock, values in curves]
    return [
        [f"{100 * share:g} %", f"{level:.4g}", *("–" if np.isnan(time) else f"{time:.4g}" for time in times)]
        for share, level, *times in zip(_SHARES, levels, *columns, strict=True)
    ]
