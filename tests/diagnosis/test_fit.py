"""Loss, accuracy and suspected labels on numbers that can be checked by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from snapshots import forward, snapshot, values

from dynascope.diagnosis.measurements.fit import measure_fit, suspected_classes
from dynascope.errors import InputError


def fit(outputs, targets, raw_outputs=None, **given):
    outputs = np.asarray(outputs, float)
    raw_outputs = outputs if raw_outputs is None else raw_outputs
    return values(measure_fit(snapshot(forward=forward(outputs, raw_outputs=raw_outputs), targets=targets, **given)))


LOGITS = np.array([[3.0, 0.0], [2.0, 0.0], [0.0, 3.0], [3.0, 0.0]])
LABELS = np.array([0, 0, 1, 1])


def test_accuracy_loss_and_flipped_examples():
    flipped = np.array([True, False, False, True])
    found = fit(LOGITS, LABELS, compute_loss=lambda raw: raw.sum(), flipped=flipped)
    assert found.pop("suspected_class") == [-1, -1, -1, 0]
    assert found == {
        "reference_accuracy": 0.75,
        "suspected_noise": 0.25,
        "suspicion": 3,
        "unsuspected_accuracy": 1,
        "reference_loss": 11,
        "flipped_fit": 0.5,
        "flipped_share": 0.5,
    }
    assert np.isnan(fit(LOGITS, LABELS, flipped=np.zeros(4, bool))["flipped_fit"])


def test_one_hot_targets_are_labels():
    assert fit(LOGITS, np.eye(2)[LABELS]) == fit(LOGITS, LABELS)


@pytest.mark.parametrize("targets", [np.ones((4, 2)), np.array([[0.9, 0.1]] * 4), np.zeros(4)])
def test_regression_has_a_loss_but_no_accuracy(targets):
    outputs = LOGITS[:, :1] if targets.ndim == 1 else LOGITS
    found = fit(outputs, targets, compute_loss=lambda raw: 2.0, flipped=np.ones(4, bool))
    assert found.pop("reference_loss") == 2
    assert len(found) == 6
    assert np.isnan(list(found.values())).all()


def test_nothing_is_measured_without_targets():
    assert measure_fit(snapshot()) == {}


def test_ignored_positions_of_sequences_do_not_count():
    raw = np.stack([LOGITS, -LOGITS])
    targets = np.array([0, -100, 1, -100, 1, 1, -100, 1])
    flipped = np.repeat([True, False], 4)
    found = fit(raw.reshape(8, 2), targets, raw, compute_loss=lambda each: each.shape[0], flipped=flipped)
    assert found["reference_loss"] == 2  # the criterion gets the outputs in their original shape
    assert found["reference_accuracy"] == 1
    assert found["flipped_share"] == pytest.approx(2 / 5)
    assert found["flipped_fit"] == 1


def test_a_failing_criterion_is_named_and_the_rest_is_measured():
    notes = []

    def broken(raw):
        raise ValueError("wrong shape")

    found = fit(LOGITS, LABELS, compute_loss=broken, note=notes.append)
    assert np.isnan(found["reference_loss"])
    assert found["reference_accuracy"] == 0.75
    assert len(notes) == 1
    assert "wrong shape" in notes[0]


def test_labels_out_of_range_are_named():
    with pytest.raises(InputError) as error:
        fit(LOGITS, LABELS + 1)
    assert error.value.argument == "reference"


def test_a_label_is_suspected_if_another_class_is_above_its_threshold():
    # Thresholds: class 0: mean(0.7, 0.5, 0.3) = 0.5; class 1: mean(0.9, 0.7) = 0.8; class 2 has no example.
    p = np.array([[0.7, 0.1, 0.2], [0.5, 0.1, 0.4], [0.3, 0.65, 0.05], [0.0, 0.9, 0.1], [0.3, 0.7, 0.0]])
    labels = np.array([0, 0, 0, 1, 1])
    assert (suspected_classes(p, labels) == -1).all()  # 0.65 is the largest of the third row, but below 0.8
    p[2] = [0.1, 0.85, 0.05]
    assert suspected_classes(p, labels).tolist() == [-1, -1, 1, -1, -1]
    p[2] = [0.1, 0.0, 0.9]
    assert (suspected_classes(p, labels) == -1).all()


def by_definition(p, labels):
    """The confident joint of arXiv:1911.00068: the class with the largest probability above its threshold."""
    present = sorted(set(labels.tolist()))
    thresholds = {j: np.mean(p[labels == j, j]) for j in present}
    found = []
    for row, label in zip(p, labels, strict=True):
        above = [j for j in present if row[j] >= thresholds[j] * (1 - 1e-6)]
        best = max(above, key=lambda j: (row[j], j == label)) if above else label
        found.append(-1 if best == label else best)
    return found


@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 30))
def test_suspected_classes_follow_the_definition(seed, classes, count):
    draw = np.random.default_rng(seed)
    p, labels = draw.dirichlet(np.ones(classes), size=count), draw.integers(classes, size=count)
    found = suspected_classes(p, labels)
    assert found.tolist() == by_definition(p, labels)
    order = draw.permutation(count)
    assert suspected_classes(p[order], labels[order]).tolist() == found[order].tolist()


@pytest.mark.parametrize("classes", [3, 7, 10, 1000])
def test_equal_probabilities_raise_no_suspicion(classes):
    labels = np.random.default_rng(0).integers(classes, size=200)
    for kind in (np.float32, np.float64):
        assert (suspected_classes(np.full((200, classes), 1 / classes, kind), labels) == -1).all()
    found = fit(np.zeros((200, classes)), labels)
    assert (found["suspected_noise"], found["suspicion"]) == (0, 0)
    assert found["unsuspected_accuracy"] == found["reference_accuracy"]


def test_flipped_labels_of_a_good_classifier_are_suspected():
    draw = np.random.default_rng(0)
    true = draw.integers(5, size=2000)
    given_labels = np.where(draw.random(2000) < 0.2, (true + draw.integers(1, 5, size=2000)) % 5, true)
    logits = 4.0 * np.eye(5)[true] + draw.normal(size=(2000, 5))
    found = fit(logits, given_labels)
    assert found["suspected_noise"] == pytest.approx(np.mean(given_labels != true), abs=0.03)
    assert found["suspicion"] == pytest.approx(4, abs=0.5)
    assert found["unsuspected_accuracy"] > 0.97
    recorded = np.array(found["suspected_class"])
    assert recorded.shape == (1024,)
    assert np.mean(recorded == np.where(given_labels != true, true, -1)[:1024]) > 0.95
    assert fit(logits, true)["suspected_noise"] < 0.03
    memorised = 4.0 * np.eye(5)[given_labels] + draw.normal(size=(2000, 5))
    assert fit(memorised, given_labels)["suspected_noise"] < 0.03


def test_jax_finds_the_same_labels():
    p = np.random.default_rng(0).dirichlet(np.ones(4), size=100).astype(np.float32)
    labels = np.arange(100) % 4
    found = suspected_classes(jnp.asarray(p), jnp.asarray(labels))
    assert np.asarray(found).tolist() == suspected_classes(p, labels).tolist()
