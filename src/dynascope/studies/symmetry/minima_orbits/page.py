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
    """The figures: flat directions, sharpness along the orbit, and gap between flat and curved directions."""
    return [
        Chart(
            "flat_directions",
            "architecture",
            "Number of zero eigenvalues of the Hessian of each trained network, and the prediction: the dimension of "
            "the orbit of its symmetry group.",
            title="Flat directions of the minimum",
            x_label="network",
            y_label="flat directions",
            points=True,
        ),
        Chart(
            "sharpness",
            "along",
            "Largest curvature of linear networks that learned the same map, as their weights are moved a distance τ "
            "along the orbit of the minimum; training ends at τ = 0. For each initial imbalance λ between the layers, "
            "training ends at a different point of the same orbit.",
            log="y",
            title="Sharpness along the orbit of a minimum",
        ),
        Chart(
            ("least_curvature", "orbit_curvature"),
            "architecture",
            "Smallest curvature that does not count as zero, and largest curvature along the symmetries, which theory "
            "predicts to be zero up to rounding. Both are relative to the largest curvature. With a wide gap between "
            "them, the number of flat directions is unambiguous.",
            log="y",
            words=("smallest nonzero", "largest along symmetries"),
            title="Gap between flat and curved directions",
            x_label="network",
            y_label="curvature / largest curvature",
            points=True,
        ),
    ]


def meaning(study: MinimaOrbits, result: Comparison) -> str:
    """Summarise the numbers of flat directions and the sharpness along one orbit."""
    seen, counted = result.observed["flat_directions"], result.predicted["flat_directions"]
    sharpness = result.observed["end_sharpness"]
    return (
        "A symmetry maps each minimum of the loss to other minima, so minima form whole orbits. The minima of the "
        f"trained networks are flat in {_range(seen)} directions; the orbits of their symmetry groups have "
        f"{_range(counted)} dimensions. All points of an orbit compute the same function but can differ in sharpness: "
        f"linear networks that learned the same map from {study.balances} initial imbalances λ ended with largest "
        f"curvatures from {rounded(sharpness.min())} to {rounded(sharpness.max())}. Theory predicts this sharpness "
        "from the imbalance, which gradient flow conserves; the minimum is flattest for balanced layers (λ = 0). The "
        "minima of networks that are wider than their teacher or have rarely active neurons can also be flat in "
        "directions that do not come from symmetries."
    )


def _range(values: xr.DataArray) -> str:
    least, most = int(values.min()), int(values.max())
    return f"{least}" if least == most else f"{least} to {most}"
