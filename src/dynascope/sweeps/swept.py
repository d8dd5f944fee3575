"""A stored sweep: its record, its table and its failures."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from dynascope.results import name_all
from dynascope.sweeps.folder import STORE, read_manifest
from dynascope.sweeps.hypercube import STATUSES
from dynascope.validation import checked

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Sweep", "load_sweep"]


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A sweep that was read from its folder, finished or not.

    Attributes:
        path: The folder.
        record: All cells, with the axes of the sweep as coordinates. `status` is "waiting", "running", "done" or
            "failed"; `reason` states why a cell failed, and `seconds` is its duration. A number that was returned has
            the axes of the sweep. A curve has the further dimension `point`, from its first (0) to its last recorded
            time (1), and the times of its points are the variable `time`, `step` or `epoch`; between recorded times, it
            is interpolated. A list, such as the times of jumps, is filled with NaN to the length of the longest one,
            and `count_…` is its length. For a study, `verdict`, `error_…` and `claim_…` are the verdict, the errors of
            the quantities and the outcomes of the claims. Names that the sweep or one of its axes has get a final
            underscore, and dimensions of length one are dropped.
        run: The name of the study or the function, the fixed arguments and the version.
    """

    path: Path
    record: xr.Dataset
    run: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the study or the function."""
        return str(self.run.get("study") or self.run.get("function"))

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes of the sweep."""
        return tuple(map(str, self.record["status"].dims))

    @property
    def counts(self) -> dict[str, int]:
        """The number of cells of each status."""
        found = collections.Counter(self.record["status"].to_numpy().ravel().tolist())
        return {status: found[status] for status in STATUSES if found[status]}

    @property
    def numbers(self) -> list[str]:
        """The names of the variables with one number for each cell, without the durations."""
        found = self.record.data_vars.items()
        return [
            str(name) for name, each in found if each.dtype.kind == "f" and each.dims == self.axes and name != "seconds"
        ]

    def to_dataframe(self) -> pd.DataFrame:
        """A table with one row for each cell, and one column for each argument, number and text."""
        names = [name for name, each in self.record.data_vars.items() if set(each.dims) == set(self.axes)]
        return self.record[names].to_dataframe().reset_index()

    def failures(self) -> pd.DataFrame:
        """The failed cells with their reasons."""
        table = self.to_dataframe()
        return table.loc[table["status"] == "failed", [*self.axes, "reason"]].reset_index(drop=True)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the page of the sweep."""
        from dynascope.sweeps.page import write_sweep_page

        return write_sweep_page(self, path)

    def __repr__(self) -> str:
        axes = " × ".join(f"{name} ({self.record.sizes[name]})" for name in self.axes)
        counts = ", ".join(f"{count} {status}" for status, count in self.counts.items())
        return f"<Sweep of {self.name} over {axes}: {counts}>"


@checked
def load_sweep(path: str | PathLike[str]) -> Sweep:
    """Read a sweep, also while it is being computed.

    Args:
        path: The folder that was passed to `sweep` as `out`.

    Raises:
        InputError: The folder is missing, is not the folder of a sweep, or has another format.

    Example:
        >>> import tempfile
        >>> from dynascope.sweeps import sweep
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = sweep(lambda rate: rate**2, over={"rate": [1.0, 2.0]}, out=f"{folder}/s", workers=0)
        ...     load_sweep(f"{folder}/s").record["value"].values
        array([1., 4.])
    """
    manifest = read_manifest(Path(path))
    with xr.open_zarr(Path(path) / STORE, chunks=None, consolidated=True, decode_times=False) as stored:
        record = stored.load()
    record = record.map(_plain)
    single = [name for name, size in record.sizes.items() if size == 1 and name not in manifest["axes"]]
    return Sweep(Path(path), name_all(record.squeeze(single, drop=True)), manifest["run"])


def _plain(values: xr.DataArray) -> xr.DataArray:
    """Text as fixed-length strings, which numpy compares faster than objects."""
    return values.astype(str) if values.dtype.kind in "OT" else values.astype(values.dtype.newbyteorder("="))
