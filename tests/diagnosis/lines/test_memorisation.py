from __future__ import annotations

import numpy as np
import pytest
import torch
from diagnosed_runs import clusters, facts, relu_network, trained

from dynascope.diagnosis.lines.memorisation import memorisation


def flipped_run(steps, **options):
    """Train on clusters of which a fifth of the labels are flipped, and measure the fit by hand."""
    x, y, flipped = clusters(flips=0.2, gap=3.0)

    def fit(network):
        with torch.no_grad():
            right = (network(x).argmax(1) == y).numpy()
        return {"reference_accuracy": right.mean(), "flipped_fit": right[flipped].mean(), "flipped_share": 0.2}

    return trained(relu_network(20, 64, 4), x, y, steps=steps, measure=fit, **options)


def fitted(accuracy, fit, share=0.25, **variables):
    count = len(accuracy)
    return facts(
        {
            "reference_accuracy": accuracy,
            "flipped_fit": fit,
            "flipped_share": [share] * count,
            **{name: ("layer", np.reshape(each, (-1, 1))) for name, each in variables.items()},
        },
        labels={"layer": ["last"]} if variables else {},
        steps=[10 * k for k in range(count)],
    )


@pytest.mark.slow
def test_a_long_run_memorises_flipped_labels_and_a_short_one_does_not():
    long, short = memorisation(flipped_run(800)), memorisation(flipped_run(30))
    assert (long.state, short.state) == ("memorising", "not memorising")
    assert long.weight > short.weight
    assert long.number == 1 > long.threshold > short.number


def test_the_threshold_is_halfway_between_chance_and_a_complete_fit():
    # Of the correct labels, (0.7 − 0.25 · 0.1)/0.75 = 0.9 are predicted: errors hit a wrong label of four with 0.1/3.
    line = memorisation(fitted([0.25, 0.7], [0.25, 0.1], output_dimension=[4, 4]))
    assert line.threshold == pytest.approx((1 + 0.1 / 3) / 2)
    assert line.state == "not memorising"


def test_an_untrained_network_fits_wrong_labels_by_chance_only():
    # The accuracy of guessing is 1/C, both on correct and on flipped labels.
    line = memorisation(fitted([0.25], [0.25], output_dimension=[4]))
    assert line.threshold == pytest.approx(0.5 + 0.25 / 2)
    assert line.state == "not memorising"


def test_the_action_names_the_last_step_before_memorisation():
    line = memorisation(fitted([0.2, 0.7, 0.75, 0.9, 1.0], [0.2, 0.0, 0.1, 0.7, 1.0]))
    assert line.state == "memorising"
    assert "step 20" in line.action


@pytest.mark.parametrize("run", [facts({"loss": [1.0]}), fitted([0.9], [np.nan], share=0.0)])
def test_runs_without_flipped_examples_are_not_measured(run):
    assert memorisation(run).state == "not measured"
