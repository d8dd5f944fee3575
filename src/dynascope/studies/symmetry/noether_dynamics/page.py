"""Figures and text of the page of noether-dynamics."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        ("squared_norm", "coherent_norm"),
        over="step",
        log="y",
        places={"start": (0,), "layer": (1,)},
        words=("measured", "if gradients hardly changed"),
        y_label="squared norm of the second layer",
        title="The norm of a layer on minibatches",
        caption="The squared norm of the second layer. From the sizes of its gradients two closures tell what it "
        "should be: dashed if gradients are independent, and the other line if they hardly change.",
    ),
    Chart(
        "relative_growth",
        over="sampled_step",
        places={"start": (0,)},
        x_label="step",
        y_label="growth of ‖W‖⁴ over its start",
        title="The norms of the layers on the full batch",
        caption="By theory norms only grow without decay. Dashed is the closure of gradients that hardly change, "
        "which leaves out that momentum has yet to build up in the first few steps.",
    ),
    Chart(
        "growth_share",
        over="run",
        log="y",
        symbols={"start": "", "layer": ""},
        y_label="growth, over the coherent",
        x_label="run",
        title="Which closure describes which run",
        caption="How much of the growth of coherent gradients there was, in each layer of each network. By theory "
        "1 if gradients hardly change and (1 − β)/(1 + β) if they are independent.",
        points=True,
    ),
    Chart(
        "angular_step",
        over="step",
        places={"start": (0,)},
        log="y",
        y_label="angle of a step",
        title="How far a step turns a layer on minibatches",
        caption="Root mean square over neighbouring steps of the angle by which a step turns a layer. At "
        "equilibrium theory says √(2ηλ/(1 + β)) (dashed) for every layer of any network.",
    ),
)

MEANING = (
    "Multiplying a normalised layer by a number changes nothing of what the network does, but the smaller the "
    "layer, the more a step turns it. So its size is a learning rate that training sets for itself: every step "
    "makes the layer longer, weight decay makes it shorter. On minibatches the second layer of the first network "
    "went from a squared norm of {observed.squared_norm[layer=2][start=0]:first} to "
    "{observed.squared_norm[layer=2][start=0]:last}. Steps add more if they point the same way: of the growth "
    "that momentum brings if gradients do not change, {observed.growth_share[run=minibatches]:mean:percent} was "
    "seen with minibatches, where theory of independent gradients says "
    "{predicted.growth_share[run=minibatches]:mean:percent}, and "
    "{observed.growth_share[run=full batch, no decay]:mean:percent} with the full batch. In the end a step on "
    "minibatches turned a layer by {observed.late_angle:mean} on average, and theory says "
    "{predicted.angular_step:mean} from learning rate, decay and momentum alone. By default network, noise and "
    "rates are such that both cases are nearly pure: elsewhere neighbouring gradients may agree in part, or oppose "
    "each other."
)
