"""Figures and text of the page of four-parameter-parity."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        ("mode_strength", "strength", "multilinear_strength"),
        "time",
        "How much of the parity is learned, from the last of the starts: the parts of the three neurons (modes "
        "1, 2 and 3), their sum, and how one mode alone would learn it (dashed, shown and not judged). As every "
        "neuron has its own time, the sum comes to its end more slowly.",
        words=("", "their sum", "one mode alone"),
        places={"scale": (-1,)},
        title="A skill that is learned in parts",
        y_label="strength of the skill (1: learned)",
    ),
    Chart(
        "half_saturation_time",
        "scale",
        "The time at which each neuron first has half of its final strength, over the size of the weights at the "
        "start. From small starts, ten times smaller weights delay it by the same time again and again: the "
        "lines are straight over a logarithmic axis, and steepest for the last neuron.",
        log="x",
        title="When each neuron learns its part",
        points=True,
    ),
    Chart(
        "loss",
        "time",
        "The loss over time for each scale of the start. When the last neuron has its part it falls exponentially.",
        decades=4,
        log="y",
        title="The loss",
    ),
)

MEANING = (
    "A network of three neurons and four parameters, its weights being tied to each other, is trained on all "
    "inputs of three bits until it knows whether the number of ones is even or odd. From the last of the starts, "
    "of scale {observed.scale:last}, its neurons reach half their strength at the times "
    "{observed.half_saturation_time[mode=1]:last}, {observed.half_saturation_time[mode=2]:last} and "
    "{observed.half_saturation_time[mode=3]:last}; the equations of the four parameters say "
    "{predicted.half_saturation_time[mode=1]:last}, {predicted.half_saturation_time[mode=2]:last} and "
    "{predicted.half_saturation_time[mode=3]:last}. A skill that is shared by neurons so ends later than the "
    "curve of a single mode, which explains why forecasts by such a curve meet the rise of a skill and not its "
    "end. It is an example that can be solved; in larger networks the parts are many and not known beforehand."
)
