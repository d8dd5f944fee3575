"""Figures and text of the page of minima-orbits."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "flat_directions",
        "architecture",
        "In how many directions the Hessian of a trained network is zero, and how many its symmetries have.",
        title="A minimum is flat along symmetries alone",
        x_label="network",
        y_label="flat directions",
        points=True,
    ),
    Chart(
        "sharpness",
        "along",
        "The largest curvature of linear networks that learned one map, moved along the orbit of their minimum "
        "(τ = 0 is where training ended). Every λ, the balance of the layers at the start, ends at another point "
        "of one orbit.",
        log="y",
        title="How sharp a minimum is depends on where it lies on its orbit",
    ),
    Chart(
        ("least_curvature", "orbit_curvature"),
        "architecture",
        "How clearly flat directions are told from others: the least curvature that is not taken for zero, and the "
        "largest along the symmetries, which is rounding. Both are over the largest of all.",
        log="y",
        words=("least of other directions", "largest along symmetries"),
        title="Flat, or nearly flat",
        x_label="network",
        y_label="curvature over the largest",
        points=True,
    ),
)

MEANING = (
    "A symmetry turns one minimum of the loss into others, so that minima come as whole orbits. Trained networks "
    "were flat in {observed.flat_directions:least} to {observed.flat_directions:most} directions, and the "
    "symmetries of their kinds have {predicted.flat_directions:least} to {predicted.flat_directions:most}. All "
    "points of an orbit compute the same function, but not all are as sharp. Linear networks that learned one map "
    "ended with largest curvatures between {observed.end_sharpness:least} and {observed.end_sharpness:most}. By "
    "theory the balance of the layers at the start, which training conserves, says which, and the flattest is "
    "where the layers are equal; so a flat minimum is no sign of a better function here. Networks that are wider "
    "than their teacher, or have neurons that hardly ever fire, are flat in further directions, which are none of "
    "symmetries."
)
