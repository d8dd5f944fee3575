"""Figures and text of the page of group-composition."""

from __future__ import annotations

from dynascope.results import Chart
from dynascope.studies import StaircaseStudy

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    *StaircaseStudy.figures,
    Chart(
        "irrep_loss",
        title="One representation after the other",
        caption="The loss in each irreducible representation of the group: each of these parts of the answer stays "
        "unlearned until its turn, and is then learned as a whole.",
    ),
)

MEANING = (
    "A network was trained from weights of {parameters.scale} to give the product of {parameters.sequence_length} "
    "elements of the group {parameters.group} from their encodings as vectors. Such a vector is a sum of parts "
    "which the group turns within themselves, its irreducible representations; they are to a group what "
    "frequencies are to the clock. Theory ranks them by how fast a neuron that is tuned to one can grow, and puts "
    "the first jump at {predicted.jump_time:first} and the last at {predicted.jump_time:last}; in training they "
    "came at {residual.observed_jump_time:first} and {residual.observed_jump_time:last}. The encoding was made so "
    "that jumps are apart, the neurons start near one representation each, and every neuron's rate is scaled by "
    "its size; without these, jumps overlap."
)
