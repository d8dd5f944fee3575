"""Figures and text of the study `stochastic-collapse`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.noise.stochastic_collapse.study import StochasticCollapse

__all__ = ["figures", "meaning"]

_NETWORKS = {"mlp": "MLP", "convolutional": "convolutional network"}


def figures(study: StochasticCollapse, result: Comparison) -> list[Chart]:
    """The three models, then the networks on digits."""
    return [*_models(result), *_networks(study, result)]


def _models(result: Comparison) -> list[Chart]:
    difference = result.observed["change"]
    return [
        Chart(
            "cumulative",
            over="square",
            log="x",
            symbols={"noise_level": "ζ²/2"},
            y_label="share of paths below",
            title="Distribution of a weight in a double well",
            caption="Cumulative distribution of θ² for several noise levels, measured and predicted (dashed). Above "
            "ζ²/2 = 1, the theory predicts that weights fall to zero, a maximum of the loss; close to this threshold, "
            "some weights do not reach zero during the run. Below it, the largest distance between measured and "
            f"predicted distribution is {percent(difference.sel(hypothesis='double well, stationary law'))}.",
        ),
        Chart(
            "well_growth",
            over="noise_level",
            y_label="growth rate of log |θ|",
            title="Growth rate of a weight in a double well",
            caption="Above the threshold ζ²/2 = 1, the theory predicts the rate 1 − ζ²/2, and the largest difference "
            f"is {rounded(difference.sel(hypothesis='double well, collapse'))}. Below the threshold, it predicts that "
            "weights become stationary.",
            points=True,
        ),
        Chart(
            "learned",
            over="teacher",
            symbols={"student": "η"},
            x_label="strength of the teacher / (ης²/2)",
            y_label="learned strength / (ης²/2)",
            title="Strength that students learn from noisy labels",
            caption="The theory predicts that noise reduces the learned strength by ης²/2, and that students learn "
            "nothing from teachers weaker than this threshold. Straight lines through the points of strong teachers "
            f"cross zero within {percent(difference.sel(hypothesis='student, threshold'))} of the threshold.",
            points=True,
        ),
        Chart(
            "neuron_exponent",
            over="neuron",
            y_label="growth rate / ης²",
            title="Growth of neurons under isotropic noise",
            caption="Below zero, noise drives a neuron to zero; above zero, it keeps the neuron away from zero. The "
            "theory predicts the former for one input and one output, and the latter for equal numbers of inputs and "
            "outputs from three on.",
            points=True,
        ),
    ]


def _networks(study: StochasticCollapse, result: Comparison) -> list[Chart]:
    name, accuracy = _NETWORKS[study.networks[0]], _first(result, "late_accuracy").sel(run="noisy labels")
    charts = [
        Chart(
            "final_fraction",
            over="learning_rate",
            log="x",
            symbols={"start": ""},
            y_label="share of independent units",
            title="Independent units after training",
            caption="Share of the units of networks on digits that have neither vanished nor become equal to other "
            "units, with true and with noisy labels. Each point is one network.",
            points=True,
        ),
        Chart(
            ("independent_fraction", "dead_fraction"),
            over="time",
            members={"run": ("noisy labels",)},
            places={"learning_rate": (-1,)},
            symbols={"start": "", "architecture": ""},
            words=("independent", "dead"),
            y_label="share of the units",
            title="Units during training at the largest learning rate with noisy labels",
            caption="A dead unit is active on no training digit, so that only weight decay changes it.",
        ),
        Chart(
            "late_accuracy",
            over="learning_rate",
            log="x",
            symbols={"start": ""},
            x_label="initial learning rate",
            y_label="accuracy on held-out digits",
            title="Accuracy after a reduction of the learning rate",
            caption="All networks continued training at the smallest learning rate with true labels. After noisy "
            f"labels, the {name} reached a mean accuracy of {percent(accuracy.isel(learning_rate=0).mean())} if the "
            "learning rate had been the smallest from the beginning, and of "
            f"{percent(accuracy.isel(learning_rate=-1).mean())} if it had been the largest. Each point is one network.",
            points=True,
        ),
    ]
    if "near_growth" not in result.observed:
        return charts
    growth = result.observed["near_growth"].sel(run="noisy labels").mean()
    near = Chart(
        "near_growth",
        over="near_foretold",
        symbols={"start": ""},
        x_label="predicted growth rate",
        y_label="measured growth rate",
        title="Growth of neurons near zero",
        caption="Growth rate of a neuron that starts at 10⁻¹² of its size, against the prediction from Hessians along "
        f"the preceding time, averaged over all data. With noisy labels, the mean growth rate is {rounded(growth)}; "
        "where the rate is positive, noise does not drive such neurons to zero. Each point is one network.",
        points=True,
    )
    return [*charts[:2], near, charts[2]]


def meaning(study: StochasticCollapse, result: Comparison) -> str:
    """When noise drives weights to zero in the models, and how many units of the networks remain."""
    threshold = result.observed["change"].sel(hypothesis="student, threshold")
    growth, name = result.observed["neuron_exponent"], _NETWORKS[study.networks[0]]
    independent = _first(result, "final_fraction").mean("start")
    true, noisy = (independent.sel(run=labels) for labels in ("true labels", "noisy labels"))
    dead = _first(result, "dead_fraction").sel(run="noisy labels").isel(learning_rate=-1, time=-1).mean()
    return (
        "Noise proportional to a weight can drive the weight to zero although the loss pushes it away. In a double "
        "well, the theory predicts this for noise levels ζ²/2 above 1. A network of two weights, trained on noisy "
        "labels, is such a double well. The theory predicts that it learns nothing from teachers weaker than half of "
        "learning rate times label variance, and that this threshold reduces the strength learned from stronger "
        f"teachers. The measured threshold differs from the prediction by at most {percent(threshold)} at every "
        "learning rate. In more dimensions, the same noise can have the opposite effect: depending on their numbers of "
        f"inputs and outputs, simulated neurons grew at rates from {rounded(growth.min())} to {rounded(growth.max())}, "
        "in units of ης². The presence of noise alone therefore does not determine whether the units of a network "
        f"vanish. In the {name} on digits, {percent(true.isel(learning_rate=-1))} of the units were independent after "
        f"training at the largest learning rate with true labels, {percent(noisy.isel(learning_rate=-1))} at the same "
        f"rate with noisy labels, and {percent(noisy.isel(learning_rate=0))} at the smallest rate with noisy labels. "
        f"At the largest rate with noisy labels, {percent(dead)} of the units were dead: they are active on no digit, "
        "and weight decay alone drives them to zero, whereas the theory describes active neurons. The claims on "
        "networks have confidence intervals over initial weights; the verdict rests on the three models only."
    )


def _first(result: Comparison, name: str) -> xr.DataArray:
    """A variable of the first network."""
    return result.observed[name].isel(architecture=0)
