from __future__ import annotations

import pytest
import torch
from diagnosed_runs import clusters, facts, relu_network, trained

from dynascope.diagnosis.lines.label_noise import label_noise


def suspected(p, y):
    """Confident learning, example by example."""
    classes = range(p.shape[1])
    thresholds = [p[y == c, c].mean() for c in classes]
    count = 0
    for row, label in zip(p, y, strict=True):
        confident = [c for c in classes if row[c] >= thresholds[c]]
        count += bool(confident) and max(confident, key=lambda c: row[c]) != label
    return count / len(y)


def noisy_run(flips, *, steps=600, **options):
    """Train on clusters with flipped labels that the recorder does not know."""
    x, y, _ = clusters(400, flips=flips, gap=3.0)

    def fit(network):
        with torch.no_grad():
            p = network(x).softmax(1).double().numpy()
        labels = y.numpy()
        return {"reference_accuracy": (p.argmax(1) == labels).mean(), "suspected_noise": suspected(p, labels)}

    return trained(relu_network(20, 64, 4), x, y, steps=steps, measure=fit, **options)


def judged(accuracy, suspects, steps=None, **more):
    return facts({"reference_accuracy": accuracy, "suspected_noise": suspects, **more}, steps=steps)


@pytest.fixture(scope="module")
def memorised():
    return noisy_run(0.2)


@pytest.mark.slow
def test_wrong_labels_are_found_and_correct_labels_are_clean(memorised):
    noisy, clean = label_noise(memorised), label_noise(noisy_run(0.0))
    assert (noisy.state, clean.state) == ("noisy labels", "clean labels")
    assert noisy.number > noisy.threshold
    assert clean.number < clean.threshold


@pytest.mark.slow
def test_labels_are_judged_before_the_network_memorises(memorised):
    assert float(memorised.record["suspected_noise"][-1]) < 0.01  # the network fits the wrong labels
    line = label_noise(memorised)
    assert "including the wrong ones" in line.sentence
    late = type(memorised)(memorised.record.isel(step=slice(-3, None)))
    assert label_noise(late).state == "not measured"


def test_known_flips_are_label_noise():
    line = label_noise(judged([0.2, 0.9], [0.5, 0.0], flipped_share=[0.1, 0.1]))
    assert (line.state, line.number) == ("noisy labels", 0.1)
    assert label_noise(judged([0.2, *[0.9] * 4], [0.5, *[0.0] * 4], flipped_share=[0.0] * 5)).state == "clean labels"


def test_the_share_of_confident_errors_decides():
    accuracy = [0.1, 0.8, 0.8, 0.8, 0.8]
    states = [label_noise(judged(accuracy, [0.9, *[share] * 4])).state for share in (0.02, 0.07, 0.15)]
    assert states == ["clean labels", "not measured", "noisy labels"]


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
