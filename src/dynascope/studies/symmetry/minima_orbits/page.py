"""Figures and text of the study `minima-orbits`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.symmetry.minima_orbits.study import MinimaOrbits

__all__ = ["figures", "meaning"]


def figures(study: MinimaOrbits, result: Comparison) -> list[Chart]:
    """The flat directions, the sharpness along the orbit, and the gap between flat and curved directions."""
    return [
        Chart(
            "flat_directions",
            "architecture",
            "Number of directions in which the Hessian of the trained network is zero, and the predicted number, the "
            "dimension of the orbit of its symmetry group.",
            title="Flat directions of the minimum",
            x_label="network",
            y_label="flat directions",
            points=True,
        ),
        Chart(
            "sharpness",
            "along",
            "Largest curvature of linear networks that learned the same map, when their weights move along the orbit "
            "of the minimum. Training ends at τ = 0. Each initial balance λ of the layers ends at another point of the "
            "same orbit.",
            log="y",
            title="Sharpness along the orbit of a minimum",
        ),
        Chart(
            ("least_curvature", "orbit_curvature"),
            "architecture",
            "Smallest curvature of the directions that are not counted as flat, and largest curvature along the "
            "symmetries, which should be rounding error. Both are relative to the largest curvature. The wider the gap "
            "between them, the clearer the count of flat directions.",
            log="y",
            words=("smallest nonzero", "largest along symmetries"),
            title="Gap between flat and curved directions",
            x_label="network",
            y_label="curvature / largest curvature",
            points=True,
        ),
    ]


def meaning(study: MinimaOrbits, result: Comparison) -> str:
    """The number of flat directions, and the sharpness of the points of one orbit."""
    seen, counted = result.observed["flat_directions"], result.predicted["flat_directions"]
    sharpness = result.observed["end_sharpness"]
    return (
        "A symmetry maps each minimum of the loss to other minima, so that minima form whole orbits. The trained "
        f"networks are flat in {_range(seen)} directions, and the orbits of their symmetry groups have "
        f"{_range(counted)} dimensions. All points of an orbit compute the same function, but their sharpness can "
        f"differ. Linear networks that learned the same map from {study.balances} different balances λ ended with "
        f"largest curvatures from {rounded(sharpness.min())} to {rounded(sharpness.max())}. The theory predicts this "
        "sharpness from the balance of the layers at initialisation, which gradient flow conserves. It predicts the "
        "flattest minimum where both layers have the same size, although this minimum computes the same function as "
        "the others. Networks wider than their teacher, and networks with neurons that are rarely active, can be flat "
        "in further directions, which do not come from symmetries."
    )


def _range(values: xr.DataArray) -> str:
    least, most = int(values.min()), int(values.max())
    return f"{least}" if least == most else f"{least} to {most}"
