from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.neural_collapse import NeuralCollapse

LABELS = ["true labels", "10 % random labels", "100 % random labels", "scalar regression"]


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    sizes = [int(size) for size in draw.integers(1, 9, size=draw.integers(2, 5))]
    return NeuralCollapse(
        class_sizes=sizes,
        features=len(sizes) + int(draw.integers(0, 4)),
        initial_strength=10 ** float(draw.uniform(-6, -1)),
        random_scale=10 ** float(draw.uniform(-4, -1.8)),
        feature_rate=10 ** float(draw.uniform(-1, 1)),
        classifier_rate=10 ** float(draw.uniform(-1, 1)),
        starts=int(draw.integers(1, 4)),
        times=int(draw.integers(10, 40)),
        networks=[],
        seed=seed,
    )


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_theory_and_experiment_agree_at_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.attrs["verdict"] == "agree", tree.attrs["verdict_sentence"]
    # By then everything has been learned; otherwise agreement would be cheap.
    loss = tree["observed"].to_dataset()["loss"].to_numpy()
    assert loss[-1] < 1e-6 * loss[0]


def test_networks_are_measured_with_every_kind_of_labels_and_never_judged():
    study = NeuralCollapse(networks=["mlp"], samples=80, width=12, steps=20, batch_size=20)
    measured = study._trained_networks()
    for name in ("loss", "nc1", "nc2_angle", "nc2_norm", "nc3", "nc4", "kappa_cka", "effective_dimension"):
        dimensions, values = measured[f"network_{name}"]
        assert dimensions == ("architecture", "run", "step")
        assert values.shape == (1, 4, len(study._steps))
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    assert not any(name.startswith("network") for name in NeuralCollapse.tolerance)
    # One start, whose features do not depend on the labels.
    first = measured["network_effective_dimension"][1][0, :, 0]
    np.testing.assert_allclose(first[:3], first[0], rtol=1e-12)
    accuracy = measured["network_accuracy"][1][0, 0]
    assert accuracy[-1] > accuracy[0]


def test_labels_are_random_as_often_as_they_say():
    study = NeuralCollapse(samples=800)
    true, some, all_random, numbers = (study._digits(kind) for kind in LABELS)
    changed = [np.mean(each.labels != true.labels) for each in (some, all_random)]
    # A random label is the true one for one in ten; three standard errors of a share of 80 and of 800.
    np.testing.assert_allclose(changed, [0.09, 0.9], atol=0.035)
    np.testing.assert_array_equal(numbers.labels, true.labels)
    np.testing.assert_array_equal(np.round(numbers.targets[:, 0] * 8.25**0.5 + 4.5), true.labels)
    for each in (some, all_random, numbers):
        np.testing.assert_array_equal(each.inputs, true.inputs)
        np.testing.assert_array_equal(each.held_out, true.held_out)


def test_a_regression_decides_for_the_nearest_digit():
    study = NeuralCollapse(samples=50)
    digits = study._digits("scalar regression")
    assert digits.levels is not None
    draw = np.random.default_rng(0)
    h, classifier, bias = draw.normal(size=(100, 3)), draw.normal(size=(3, 1)), draw.normal(size=1)
    found = study._measured(digits, h, classifier, bias)
    outputs = h @ classifier + bias
    nearest = np.argmin(np.abs(outputs - digits.levels), axis=1)
    assert found["accuracy"] == np.mean(nearest[:50] == digits.labels)
    assert found["test_accuracy"] == np.mean(nearest[50:] == digits.held_out)


def test_without_networks_nothing_is_trained_on_digits():
    assert NeuralCollapse(networks=[])._trained_networks() == {}
    assert NeuralCollapse(labels=[])._trained_networks() == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("class_sizes", bad) for bad in ([4], [4, 0])),
        ("features", 2),
        *(("initial_strength", bad) for bad in (0.0, 2.5, float("nan"))),
        *(("random_scale", bad) for bad in (0.0, 0.1)),
        *((field, -1.0) for field in ("feature_rate", "classifier_rate", "learning_rate", "weight_decay")),
        *((field, 0) for field in ("starts", "times", "samples", "width", "steps", "batch_size")),
        ("samples", 900),
        ("batch_size", 301),
        ("networks", ["transformer"]),
        ("labels", ["wrong labels"]),
        ("seed", -1),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_before_anything_is_trained(monkeypatch, field, value):
    for flow in ("gradient_flow", "descend"):
        monkeypatch.setattr(f"dynascope.flows.{flow}", lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(InputError) as refusal:
        NeuralCollapse(**{**NeuralCollapse.tiny, field: value}).run()
    assert refusal.value.argument == field
