from __future__ import annotations

import numpy as np
import pytest
from diagnosed_runs import clusters, facts, relu_network, trained

from dynascope.diagnosis.lines.label_noise import label_noise


def training_run(flips, *, steps=600):
    """Train on clusters with flipped labels that the recorder does not know."""
    x, y, _ = clusters(400, flips=flips, gap=3.0)
    return trained(relu_network(20, 64, 4), x, y, steps=steps, probes=("fit",))


def judged(accuracy, suspects, steps=None, *, odds=10.0, lasting=True, others=1.0, **more):
    """A made-up run; each of 1000 examples is suspected in all rows, or for another class in each row."""
    rows = np.arange(len(accuracy))
    classes = np.where(np.arange(1000) < 1000 * np.asarray(suspects)[:, None], 1 if lasting else rows[:, None], -1)
    values = {
        "reference_accuracy": accuracy,
        "suspected_noise": suspects,
        "suspicion": np.full(len(rows), np.log(odds)),
        "unsuspected_accuracy": np.full(len(rows), others),
        "suspected_class": ("example", classes),
    }
    return facts(values | more, steps=steps, labels={"example": range(1000)})


@pytest.fixture(scope="module")
def memorised():
    return training_run(0.2)


@pytest.mark.slow
def test_wrong_labels_are_found_and_correct_labels_are_clean():
    noisy, clean = label_noise(training_run(0.2, steps=60)), label_noise(training_run(0.0))
    assert (noisy.state, clean.state) == ("noisy labels", "clean labels")
    assert noisy.number > noisy.threshold
    assert clean.number < clean.threshold


@pytest.mark.slow
def test_memorised_labels_are_undecided(memorised):
    assert float(memorised.record["suspected_noise"][-1]) < 0.01  # the network fits the wrong labels
    line = label_noise(memorised)
    assert line.state == "undecided"
    assert "memorised" in line.sentence
    late = type(memorised)(memorised.record.isel(step=slice(-3, None)))
    assert label_noise(late).state == "not measured"


def test_known_flips_are_label_noise():
    line = label_noise(judged([0.2, 0.9], [0.5, 0.0], flipped_share=[0.1, 0.1]))
    assert (line.state, line.number) == ("noisy labels", 0.1)
    assert label_noise(judged([0.2, *[0.9] * 4], [0.5, *[0.0] * 4], flipped_share=[0.0] * 5)).state == "clean labels"


def test_the_share_of_confident_errors_decides():
    accuracy = [0.1, 0.8, 0.8, 0.8, 0.8]
    states = [label_noise(judged(accuracy, [0.9, *[share] * 4])).state for share in (0.02, 0.07, 0.15)]
    assert states == ["clean labels", "undecided", "noisy labels"]


@pytest.mark.parametrize(
    ("learning", "number"),
    [({"odds": 1.1}, 1.1), ({"lasting": False}, 0), ({"others": 0.6}, 0.6)],
)
def test_errors_of_a_network_that_still_learns_are_no_label_noise(learning, number):
    accuracy, suspects = [0.1, *[0.7] * 4], [0.9, *[0.25] * 4]
    assert label_noise(judged(accuracy, suspects)).state == "noisy labels"
    line = label_noise(judged(accuracy, suspects, **learning))
    assert line.state == "undecided"
    assert line.number == pytest.approx(number)


def test_suspected_labels_that_are_fitted_later_are_undecided():
    accuracy, suspects = [0.1, *[0.7] * 4, 0.9], [0.9, *[0.25] * 4, 0.05]
    assert label_noise(judged(accuracy, suspects)).state == "undecided"
    accuracy[-1] = 0.75
    assert label_noise(judged(accuracy, suspects)).state == "noisy labels"


def test_few_errors_do_not_show_label_noise():
    accuracy, suspects = [0.1, *[0.95] * 4], [0.9, *[0.03] * 4]
    run = judged(accuracy, suspects)
    assert label_noise(run).state == "noisy labels"  # 30 of 50 errors
    assert label_noise(type(run)(run.record.isel(example=slice(100)))).state == "undecided"  # 3 of 5


def test_a_network_that_has_not_learned_cannot_judge_labels():
    line = label_noise(judged([0.1, 0.2, 0.3], [0.9, 0.8, 0.7]))
    assert line.state == "not measured"
    assert "has not learned" in line.sentence


def test_rows_after_the_highest_accuracy_do_not_count():
    # On held-out examples, a network that memorised other wrong labels is confident in its errors.
    assert label_noise(judged([0.1, 0.9, 0.9, 0.91, 0.8], [0.9, 0.01, 0.01, 0.01, 0.15])).state == "clean labels"


def test_a_record_without_the_probe_is_not_measured():
    line = label_noise(facts({"loss": [1.0, 0.5]}))
    assert line.state == "not measured"
    assert line.number is None


def test_a_steep_rise_above_all_plateaus_shows_clean_labels():
    run = judged([0.1, 0.5, 0.75, 0.9, 1.0], [0.9, 0.4, 0.2, 0.1, 0.0], steps=[0, 10, 14, 18, 22])
    assert label_noise(run).state == "clean labels"


def test_an_accuracy_that_still_rises_quickly_is_no_plateau():
    line = label_noise(judged([0.1, 0.3, 0.6, 0.9], [0.9, 0.5, 0.2, 0.1], steps=[0, 10, 14, 18]))
    assert line.state == "not measured"
    assert "plateau" in line.sentence
