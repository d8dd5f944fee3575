"""Figures and text of the study `pattern-change`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.regimes.pattern_change.study import PatternChange

__all__ = ["figures", "meaning"]


def figures(study: PatternChange, result: Comparison) -> list[Chart]:
    """The figures: loss, pattern change against imbalance, speeds, and the loss on symmetric inputs."""
    shown = _shown(study, result)
    changes = ", ".join(f"{_time(result, each)} for δ = {rounded(each)}" for each in shown)
    return [
        Chart(
            ("loss", "fixed_pattern_loss"),
            log="x",
            members={"imbalance": tuple(shown)},
            title="Loss and the change of the pattern",
            caption="Loss over time, and the predicted loss of a neuron that would keep its initial pattern. The "
            f"curves separate where the pattern changes. Predicted times of the change: {changes}.",
            words=("loss", "in the initial pattern"),
        ),
        Chart(
            ("used", "kernel_distance"),
            over="imbalance",
            points=True,
            title="Fitting before the change, and the rotation of the kernel",
            caption="Fraction of the first sample's loss that is used when the pattern changes, or at the end of "
            "training if it does not change, and kernel distance between the beginning and the end of training. Theory "
            "predicts the first quantity.",
            words=("used", "kernel distance"),
            y_label="fraction, or distance",
        ),
        Chart(
            "log_change_time",
            over="imbalance",
            points=True,
            title="Time of the pattern change",
            caption="Time at which the neuron becomes active on the second sample; the training time for neurons that "
            "do not.",
            y_label="log₁₀ time",
        ),
        Chart(
            "log_angular_factor",
            over="map_norm",
            log="x",
            points=True,
            title="Speed of the direction",
            caption="Speed of the direction of the map, divided by the component of the gradient across the map. For "
            "small maps, it is proportional to the norm (downstream), constant (balanced) or inversely proportional to "
            "the norm (upstream).",
            y_label="log₁₀ speed",
        ),
        Chart(
            "log_radial_factor",
            over="map_norm",
            log="x",
            points=True,
            title="Speed of the norm",
            caption="Speed of the norm of the map, divided by the component of the gradient along the map. For small "
            "maps, it is constant unless the layers are balanced.",
            y_label="log₁₀ speed",
        ),
        Chart(
            "symmetric_loss",
            over="symmetric_time",
            title="Symmetric inputs with odd labels",
            caption="Loss of leaky ReLU neurons on inputs x and −x with labels b·x. The prediction is the closed form "
            "of a linear neuron, with a rescaled target and time.",
        ),
    ]


def meaning(study: PatternChange, result: Comparison) -> str:
    """Summarise when neurons change their pattern, and which measurements distinguish upstream from downstream."""
    observed = result.observed
    changed = observed["changes"].to_numpy() == 1
    neurons = f"{changed.sum()} of the {len(changed)} neurons"
    text = (
        f"The neurons compute the same function at t = 0 and differ only in the imbalance δ of their layers. {neurons} "
        "became active on the second sample. "
    )
    if changed.sum() > 1:
        (first, last), used = np.array(study.imbalances)[changed][[0, -1]], observed["used"].to_numpy()[changed]
        time, loss = (observed[name].to_numpy()[changed] for name in ("log_change_time", "change_loss"))
        kernel = observed["kernel_distance"].to_numpy()[changed]
        text += (
            f"At δ = {rounded(first)}, the change came at t = {rounded(10 ** time[0])}, when {percent(used[0])} of the "
            f"loss of the first sample was used and the loss was {rounded(loss[0])}. At δ = {rounded(last)}, it came "
            f"at t = {rounded(10 ** time[-1])}, with {percent(used[-1])} used and a loss of {rounded(loss[-1])}. The "
            f"distance between the initial and the final tangent kernel ranged from {rounded(kernel.min())} to "
            f"{rounded(kernel.max())} for these neurons. To find out whether a network is upstream or downstream, "
            "measure the time of the first pattern change and the loss at that time. The final kernel distance may be "
            "the same for both. "
        )
    symmetric = observed["changed_activations"].to_numpy()
    controls = [percent(observed[f"{name}_deviation"].item()) for name in ("even_labels", "two_neurons")]
    return text + (
        f"On symmetric inputs with odd labels, at least {percent(symmetric.min())} of the activations changed, and the "
        "theory is that of a linear neuron. This equivalence holds for odd labels and a single neuron only: with an "
        f"even part in the labels, the map deviated by {controls[0]}, and with two opposite neurons, the loss deviated "
        f"by {controls[1]}."
    )


def _shown(study: PatternChange, result: Comparison) -> list[float]:
    """The smallest and the largest imbalance with a predicted change, and the one closest to zero."""
    known = np.array([each for each in study.imbalances if _time(result, each) != "none"] or study.imbalances)
    return sorted({float(each) for each in (known[0], known[np.argmin(np.abs(known))], known[-1])})


def _time(result: Comparison, imbalance: float) -> str:
    time = result.predicted["log_change_time"].sel(imbalance=imbalance).item()
    return f"t = {rounded(10**time)}" if time < np.log10(result.predicted["time"].max().item()) - 1e-6 else "none"
