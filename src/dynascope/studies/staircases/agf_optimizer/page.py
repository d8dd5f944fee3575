"""Figures and text of the page of agf-optimizer."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        ("relu_loss", "sgd_loss", "adam_loss"),
        over="neuron",
        title="ReLU networks: how good are so many neurons?",
        caption="The loss that each way of training reaches with a given number of ReLU neurons. SGD and Adam "
        "train all of them at once, and the best of several rates and seeds counts; nothing here is judged.",
        words=("added one by one", "SGD", "Adam"),
        y_label="loss",
    ),
    Chart(
        "loss",
        over="neuron",
        title="Linear networks: the best map of each rank",
        caption="With linear neurons theory knows the loss at every number of neurons: that of the best map of "
        "this rank, until no linear map is better.",
        points=True,
    ),
    Chart(
        "growth_rate",
        over="neuron",
        title="How fast the next linear neuron would grow",
        caption="The utility of the next neuron, as the rate at which it grows while small. It falls to zero where "
        "nothing is left that a linear neuron could learn, and adding neurons ends.",
        points=True,
    ),
)

MEANING = (
    "Neurons were added one at a time, each in the direction in which it would grow fastest, and after each the "
    "network was trained until it rests. Of linear neurons theory knows the outcome: a loss of "
    "{predicted.loss:first} with one and of {predicted.loss:last} with {parameters.neurons}, where training came "
    "to {observed.loss:first} and {observed.loss:last}. Of ReLU neurons it knows by how much each must lower the "
    "loss at least; the smallest share of this that was kept is {observed.guarantee:least:percent}. On average "
    "over all numbers of ReLU neurons the loss came to {observed.relu_loss:mean}, and with SGD and Adam to "
    "{observed.sgd_loss:mean} and {observed.adam_loss:mean}: a comparison on one data set of {parameters.samples} "
    "samples, and no more."
)
