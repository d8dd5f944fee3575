"""Figures and text of the page of conservation."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        ("moved", "drift"),
        "time",
        "How far the weights have moved since the start, and the largest change of any conserved quantity, both "
        "over the size of the weights. What moves charges is the error of the solver, which is allowed more at the "
        "kinks of ReLU; but in the normalisation with ε > 0 it is ε.",
        words=("weights", "charges"),
        log="y",
        title="Weights move, charges stay",
        y_label="change, over the size of the weights",
    ),
    Chart(
        "epsilon_change",
        "time",
        "By how much the squared norms of the channels before a normalisation with ε = {parameters.epsilon} have "
        "changed. By theory it is what the derivative of the loss with respect to ε adds up to along the run.",
        symbols={"neuron": "channel"},
        title="What ε moves",
        y_label="change of the squared norm",
    ),
    Chart("loss", "time", "The loss of all networks.", log="y", title="The loss"),
)

MEANING = (
    "Networks were trained until their weights had moved by {observed.moved[time=last]:least:percent} to "
    "{observed.moved[time=last]:most:percent} of their size, and their charges were off by {agreement.charges} of "
    "what they were at the start. By theory each symmetry of a network, such as making the weights into a ReLU "
    "larger and those out of it smaller, keeps one combination of its squared weights, whatever the data: what the "
    "start decides, training cannot change. The small number ε that programs add in a normalisation breaks its "
    "symmetry, and moves its charges slowly, by an amount that theory tells. All this is of gradient flow; steps "
    "of finite size move charges too."
)
