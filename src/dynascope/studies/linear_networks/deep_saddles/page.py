"""Figures and text of the page of deep-saddles."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "random_loss",
        log="x",
        title="The loss of random networks",
        caption="The loss of networks that start at random, at several scales width^(−γ/2) of their "
        "weights. The smaller these are, the longer the loss waits on each plateau, and the sharper it falls.",
    ),
    Chart(
        "random_learned_rank",
        log="x",
        title="Rank by rank",
        caption="How many modes of the target are learned, in the same networks. The plateaus are at whole "
        "numbers: at each the network is near a saddle, the best map of that rank.",
        y_label="learned modes",
    ),
    Chart(
        "kernel_exponent",
        over="exponent",
        error="kernel_exponent_error",
        title="Where lazy turns to saddle-to-saddle",
        caption="The power of the width with which the tangent kernel grows at the start, against γ, for weights "
        "of variance width^−γ. Above zero wide networks are lazy; below zero their kernel vanishes and they start "
        "near the saddle at the origin.",
        points=True,
    ),
    Chart(
        "mode_strength",
        log="x",
        title="Aligned layers",
        caption="The strength of each mode where all layers are aligned from the start, which theory knows "
        "in closed form.",
    ),
)

MEANING = (
    "Linear networks of {parameters.depth} layers were trained from random weights that are the smaller the "
    "larger γ is, and the kernels of many more were measured at the start. Theory puts the turn from learning as "
    "a whole to learning mode by mode at γ = 1. Of the networks with the smallest weights the loss on the "
    "plateaus was {observed.plateau_loss:most} to {observed.plateau_loss:least}, where best maps of rank 0, 1, … "
    "have {predicted.plateau_loss:most} to {predicted.plateau_loss:least}; as weights shrink the wait before the "
    "first jump grew with a slope of {observed.escape_slope}, in units in which theory has "
    "{predicted.escape_slope}. That random networks visit these saddles in turn is a conjecture of the paper; one "
    "network and one target put it to the test here."
)
