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
    """The figures of the three models, then those of the networks on digits."""
    return [*_models(result), *_networks(study, result)]


def _models(result: Comparison) -> list[Chart]:
    difference = result.observed["change"]
    return [
        Chart(
            "cumulative",
            over="square",
            log="x",
            symbols={"noise_level": "ζ²/2"},
            y_label="fraction of paths below",
            title="Distribution of a weight in a double well",
            caption="Cumulative distribution of θ² for several noise levels ζ²/2, measured and predicted (dashed). "
            "Below the threshold ζ²/2 = 1, the largest difference between the two distributions is "
            f"{percent(difference.sel(hypothesis='double well, stationary law'))}. Above the threshold, theory "
            "predicts that weights decay to zero, which is a maximum of the loss. Just above the threshold, some "
            "weights do not reach zero within the run.",
        ),
        Chart(
            "well_growth",
            over="noise_level",
            y_label="growth rate of log |θ|",
            title="Growth rate of a weight in a double well",
            caption="Growth rate of log |θ| against the noise level. Theory predicts 1 − ζ²/2 above the threshold ζ²/2 "
            "= 1 and zero below it, where the distribution of the weight is stationary. The largest difference above "
            f"the threshold is {rounded(difference.sel(hypothesis='double well, collapse'))}.",
            points=True,
        ),
        Chart(
            "learned",
            over="teacher",
            symbols={"student": "η"},
            x_label="strength of the teacher / (ης²/2)",
            y_label="learned strength / (ης²/2)",
            title="Strength learned from noisy labels",
            caption="Learned strength against the strength of the teacher. Theory predicts that noise reduces the "
            "learned strength by ης²/2, and that students learn nothing from teachers weaker than this threshold "
            "(dashed). Straight lines fitted to the points of strong teachers cross zero within "
            f"{percent(difference.sel(hypothesis='student, threshold'))} of the threshold.",
            points=True,
        ),
        Chart(
            "neuron_exponent",
            over="neuron",
            y_label="growth rate / ης²",
            title="Growth of neurons under isotropic noise",
            caption="Growth rate of neurons of several sizes. If the rate is negative, noise drives the neuron to "
            "zero; if it is positive, noise repels the neuron from zero. Theory predicts collapse for one input and "
            "one output, and growth for n inputs and n outputs if n is at least three.",
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
            y_label="fraction of independent units",
            title="Independent units after training",
            caption="Fraction of units that have neither vanished nor become identical to other units, after training "
            "on digits with true or noisy labels. Each point is one network.",
            points=True,
        ),
        Chart(
            ("independent_fraction", "dead_fraction"),
            over="time",
            members={"run": ("noisy labels",)},
            places={"learning_rate": (-1,)},
            symbols={"start": "", "architecture": ""},
            words=("independent", "dead"),
            y_label="fraction of the units",
            title="Units during training at the largest learning rate with noisy labels",
            caption="Fractions of independent and of dead units over training. A dead unit is inactive on every "
            "training digit, so only weight decay changes it.",
        ),
        Chart(
            "late_accuracy",
            over="learning_rate",
            log="x",
            symbols={"start": ""},
            x_label="initial learning rate",
            y_label="accuracy on held-out digits",
            title="Accuracy after a reduction of the learning rate",
            caption="Accuracy after further training of all networks at the smallest learning rate with true labels. "
            f"After training on noisy labels, the {name} reached a mean accuracy of "
            f"{percent(accuracy.isel(learning_rate=0).mean())} if its initial learning rate was the smallest and "
            f"{percent(accuracy.isel(learning_rate=-1).mean())} if it was the largest. Each point is one network.",
            points=True,
        ),
    ]
    if "near_growth" not in result.observed:
        return charts
    growth = result.observed["near_growth"].sel(run="noisy labels").mean()
    near = Chart(
        "near_growth",
        over="near_prediction",
        symbols={"start": ""},
        x_label="predicted growth rate",
        y_label="measured growth rate",
        title="Growth of neurons near zero",
        caption="Measured growth rate of a neuron that starts at 10⁻¹² of its usual initial norm, against the "
        "predicted rate. The prediction uses the Hessian averaged over all data and over the preceding training steps. "
        f"With noisy labels, the mean growth rate is {rounded(growth)}; a positive rate means that noise does not "
        "drive the neuron to zero. Each point is one network.",
        points=True,
    )
    return [*charts[:2], near, charts[2]]


def meaning(study: StochasticCollapse, result: Comparison) -> str:
    """Summarise when noise drives weights to zero in the models, and how many units of the networks remain."""
    threshold = result.observed["change"].sel(hypothesis="student, threshold")
    growth, name = result.observed["neuron_exponent"], _NETWORKS[study.networks[0]]
    independent = _first(result, "final_fraction").mean("start")
    true, noisy = (independent.sel(run=labels) for labels in ("true labels", "noisy labels"))
    dead = _first(result, "dead_fraction").sel(run="noisy labels").isel(learning_rate=-1, time=-1).mean()
    return (
        "Noise proportional to a weight can drive the weight to zero even though the gradient of the loss pushes it "
        "away from zero. A student with two weights, trained on noisy labels, is predicted to learn nothing from "
        "teachers weaker than half the learning rate times the variance of the label noise; the measured threshold "
        f"differs from the predicted one by at most {percent(threshold)}. Noise can instead repel neurons with more "
        "inputs and outputs from zero: the measured growth rates of neurons of all sizes range from "
        f"{rounded(growth.min())} to {rounded(growth.max())}, in units of ης². In the {name} trained on digits with "
        f"true labels, {percent(true.isel(learning_rate=-1))} of the units were independent at the largest learning "
        f"rate. With noisy labels, the fraction was {percent(noisy.isel(learning_rate=-1))} at the same rate and "
        f"{percent(noisy.isel(learning_rate=0))} at the smallest rate. At the largest rate with noisy labels, "
        f"{percent(dead)} of the units were inactive on every digit; weight decay alone, rather than noise, drives "
        "these units to zero. The verdict rests only on the three models."
    )


def _first(result: Comparison, name: str) -> xr.DataArray:
    """A variable of the first network."""
    return result.observed[name].isel(architecture=0)
