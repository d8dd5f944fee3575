"""Figures and text of the study `noether-dynamics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.symmetry.noether_dynamics.study import NoetherDynamics

__all__ = ["figures", "meaning"]


def figures(study: NoetherDynamics, result: Comparison) -> list[Chart]:
    """The norms in both runs, the growth relative to the coherent closure, and the angle of a step."""
    return [
        Chart(
            ("squared_norm", "coherent_norm"),
            over="step",
            log="y",
            places={"start": (0,), "layer": (1,)},
            words=("measured", "coherent gradients"),
            y_label="squared norm of the second layer",
            title="Norm of a layer on minibatches",
            caption="Squared norm of the second layer of the first network. Two closures predict it from the norms of "
            "its gradients: white gradients, which are independent between steps (dashed), and coherent gradients, "
            "which hardly change.",
        ),
        Chart(
            "relative_growth",
            over="sampled_step",
            places={"start": (0,)},
            x_label="step",
            y_label="relative growth of ‖W‖⁴",
            title="Norms of the layers on the full batch",
            caption="Without weight decay, the theory predicts that norms only grow. The dashed lines show the closure "
            "of coherent gradients, which neglects the first steps, in which momentum builds up.",
        ),
        Chart(
            "growth_share",
            over="run",
            log="y",
            symbols={"start": "", "layer": ""},
            y_label="growth / coherent growth",
            x_label="run",
            title="Growth relative to the coherent closure",
            caption="Growth of ‖W‖⁴ by steps, in each layer of each network, relative to the growth by coherent "
            "gradients. The theory predicts 1 for coherent gradients and (1 − β)/(1 + β) for white gradients.",
            points=True,
        ),
        Chart(
            "angular_step",
            over="step",
            places={"start": (0,)},
            log="y",
            y_label="angle of a step",
            title="Angle of a step on minibatches",
            caption="Angle in radians by which a step turns a layer (root mean square over neighbouring steps). At "
            "equilibrium, the theory predicts √(2ηλ/(1 + β)) (dashed) for every layer of any network.",
        ),
    ]


def meaning(study: NoetherDynamics, result: Comparison) -> str:
    """The norm as a learning rate, its growth in both runs, and the angle of a step at equilibrium."""
    found = result.observed
    norm = found["squared_norm"].isel(start=0, layer=1)
    full, noisy = (found["growth_share"].isel(run=each).mean() for each in (0, 1))
    white = result.predicted["growth_share"].isel(run=1).mean()
    return (
        "Rescaling a normalised layer does not change the function of the network, but a step turns a smaller layer by "
        "a larger angle. The norm of the layer therefore acts as an adaptive learning rate: steps increase the norm, "
        "and weight decay reduces it. On minibatches, the squared norm of the second layer of the first network went "
        f"from {rounded(norm.isel(step=0))} to {rounded(norm.isel(step=-1))}. With momentum, the growth by steps "
        "depends on the correlation of gradients between steps; it is largest for coherent gradients, which hardly "
        f"change. Relative to that limit, the mean growth was {percent(noisy)} on minibatches, where the theory of "
        f"independent gradients predicts {percent(white)}, and {percent(full)} on the full batch, where the theory of "
        "coherent gradients predicts 100 %. In the second half of the run on minibatches, a step turned a layer by "
        f"{rounded(found['late_angle'].mean())} radians on average. The theory predicts "
        f"{rounded(study.experiment.angle)} from the learning rate, the weight decay and the momentum alone. The "
        "default settings are close to these two limits. At other settings, gradients of neighbouring steps can be "
        "partly correlated or anticorrelated."
    )
