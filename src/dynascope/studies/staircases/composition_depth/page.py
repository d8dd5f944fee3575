"""Figures and text of the study `composition-depth`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.staircases.composition_depth.study import CompositionDepth

__all__ = ["figures", "meaning"]


def figures(study: CompositionDepth, result: Comparison) -> list[Chart]:
    """The figures: width and depth of the constructed networks, and the width required for training."""
    return [
        Chart(
            "width",
            over="length",
            log="y",
            title="Width of the constructed networks",
            caption="Number of hidden neurons of the constructed networks. These widths are sufficient, but smaller "
            "networks may also be exact.",
            points=True,
        ),
        Chart(
            "depth",
            over="length",
            title="Depth of the constructed networks",
            caption="Number of consecutive nonlinear layers: one in the two-layer network, one per further element in "
            "the recurrent network, and the number of levels in the tree.",
            points=True,
        ),
        Chart(
            "trained_width",
            over="length",
            log="y",
            title="Smallest width required for training",
            caption=f"Smallest width at which the best of {study.seeds} training runs reaches "
            f"{rounded(study.target_loss)} times the loss of the zero function. The search starts at width "
            f"{study.smallest_width} and doubles the width until training succeeds. Points are missing if no width up "
            f"to {study.largest_width} was sufficient.",
            points=True,
        ),
    ]


def meaning(study: CompositionDepth, result: Comparison) -> str:
    """Summarise the sizes of the constructed networks, the widths required for training, and the claims."""
    observed = result.observed
    width, depth = observed["width"].max("length"), observed["depth"].max("length")
    longest = observed["trained_width"].isel(length=-1)
    exactness = observed["exactness"].min()
    return (
        f"Networks that compose k elements of the group {study.group}, with k from 2 to {study.longest}, were "
        "constructed from its representations and evaluated on all sequences. Their largest error, relative to the "
        f"largest target, is {rounded(1 - exactness)}. The two-layer network has up to {_at(width, 'two-layer')} "
        f"hidden neurons, the recurrent network {_at(width, 'recurrent')} and the tree {_at(width, 'tree')}. The "
        f"deeper networks need more consecutive layers: up to {_at(depth, 'recurrent')} in the recurrent network and "
        f"{_at(depth, 'tree')} in the tree. For k = {study.longest}, training from random weights reached the target "
        f"loss with {_trained(longest, 'two-layer')} in one layer, with {_trained(longest, 'recurrent')} in the "
        f"recurrent network and with {_trained(longest, 'tree')} in the tree. The claims are about the growth of the "
        "trained width with k. The width of the two-layer network must at least double with each further element. The "
        "widths of the recurrent network and of the tree may at most double from the smallest to the largest k."
    )


def _at(values: xr.DataArray, architecture: str) -> str:
    return rounded(values.sel(architecture=architecture))


def _trained(widths: xr.DataArray, architecture: str) -> str:
    width = int(widths.sel(architecture=architecture))
    return f"{width} neurons" if width else "no tested width"
