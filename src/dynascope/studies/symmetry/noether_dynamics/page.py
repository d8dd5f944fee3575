"""Figures and text of the study `noether-dynamics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.symmetry.noether_dynamics.study import NoetherDynamics

__all__ = ["figures", "meaning"]


def figures(study: NoetherDynamics, result: Comparison) -> list[Chart]:
    """The figures: norms in both runs, growth relative to the coherent closure, and rotation angle of a step."""
    return [
        Chart(
            ("squared_norm", "coherent_norm"),
            over="step",
            log="y",
            places={"start": (0,), "layer": (1,)},
            words=("measured", "coherent gradients"),
            y_label="squared norm of the second layer",
            title="Norm of a layer in minibatch training",
            caption="Squared norm of the second layer of the first network against the training step. Two closures "
            "predict this norm from the gradient norms: one for white gradients, which are independent between steps "
            "(dashed), and one for coherent gradients, which hardly change.",
        ),
        Chart(
            "relative_growth",
            over="sampled_step",
            places={"start": (0,)},
            x_label="step",
            y_label="relative growth of ‖W‖⁴",
            title="Norms of the layers in full-batch training",
            caption="Growth of the norms with the training step. Without weight decay, theory predicts that norms can "
            "only grow. Dashed lines show the closure for coherent gradients, which neglects the build-up of momentum "
            "in the first steps.",
        ),
        Chart(
            "growth_share",
            over="run",
            log="y",
            symbols={"start": "", "layer": ""},
            y_label="growth / coherent growth",
            x_label="run",
            title="Growth relative to the coherent closure",
            caption="Growth of ‖W‖⁴ due to steps, for each layer of each network, divided by the growth under "
            "coherent gradients. Theory predicts 1 for coherent gradients and (1 − β)/(1 + β) for white gradients.",
            points=True,
        ),
        Chart(
            "angular_step",
            over="step",
            places={"start": (0,)},
            log="y",
            y_label="rotation angle",
            title="Rotation of a layer per step",
            caption="Angle in radians by which a step on a minibatch rotates a layer (root mean square over "
            "consecutive steps). At equilibrium, theory predicts √(2ηλ/(1 + β)) for every layer of any network "
            "(dashed).",
        ),
    ]


def meaning(study: NoetherDynamics, result: Comparison) -> str:
    """Explain the norm as a learning rate, with its growth in both runs and the equilibrium rotation angle."""
    found = result.observed
    norm = found["squared_norm"].isel(start=0, layer=1)
    full, noisy = (found["growth_share"].isel(run=each).mean() for each in (0, 1))
    white = result.predicted["growth_share"].isel(run=1).mean()
    return (
        "The output of a normalised layer does not depend on the norm of its weights. However, a step of a given size "
        "rotates a layer with a smaller norm by a larger angle. The norm therefore acts as an adaptive learning rate: "
        "steps increase it, and weight decay reduces it. In minibatch training, the squared norm of the second layer "
        f"of the first network changed from {rounded(norm.isel(step=0))} to {rounded(norm.isel(step=-1))}. With "
        "momentum, the growth is largest for coherent gradients; relative to this limit, the mean growth was "
        f"{percent(noisy)} on minibatches (predicted for independent gradients: {percent(white)}) and {percent(full)} "
        "on the full batch (predicted for coherent gradients: 100 %). Late in minibatch training, a step rotated a "
        f"layer by {rounded(found['late_angle'].mean())} radians on average; theory predicts "
        f"{rounded(study.experiment.angle)} from the learning rate, weight decay and momentum alone. In general, "
        "gradients of consecutive steps can be partly correlated or anticorrelated, and neither limit applies."
    )
