from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.features.neural_collapse.claims import collapse_claims, deciding_claims
from dynascope.studies.features.neural_collapse.networks import CollapsingNetworks
from dynascope.studies.features.neural_collapse.study import NeuralCollapse
from dynascope.studies.features.relabelled_digits import LABELS


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    # Unequal classes; all counts are those of the tiny study, whose compiled programs are reused.
    first, second = np.sort(draw.choice(np.arange(1, 12), size=2, replace=False)).tolist()
    return NeuralCollapse(
        class_sizes=[first, second - first, 12 - second],
        features=4,
        initial_strength=10 ** float(draw.uniform(-6, -1)),
        random_scale=10 ** float(draw.uniform(-4, -1.8)),
        feature_rate=10 ** float(draw.uniform(-1, 1)),
        classifier_rate=10 ** float(draw.uniform(-1, 1)),
        starts=1,
        times=30,
        networks=[],
        seed=seed,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_theory_and_training_agree_for_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    # Everything has been learned by then; otherwise agreement would mean little.
    loss = tree.observed["loss"].to_numpy()
    assert loss[-1] < 1e-6 * loss[0]


def test_no_network_is_trained_without_networks_or_labels():
    for fields in ({"networks": []}, {"labels": []}):
        assert NeuralCollapse(**fields).part(CollapsingNetworks).measure() == {}
    assert not any(name.startswith("network") for name in NeuralCollapse.tolerance)


@pytest.mark.slow
def test_the_figures_show_trained_networks():
    networks = {"networks": ["mlp"], "labels": ["true labels"], "samples": 50, "width": 6, "steps": 5, "batch_size": 10}
    tree = NeuralCollapse(**NeuralCollapse.tiny | networks | {"starts": 2, "learning_rate": 1e-6}).run()
    # Networks that hardly change learn no labels.
    assert {name: (each.outcome, each.decides) for name, each in tree.claims.items()} == {
        "mlp, true labels": ("undecided", True)
    }
    assert [chart.variables[0] for chart in tree.charts] == [
        "network_nc1",  # with the other measures
        "between_class_share",
        "mode_strength",
        "network_nc1",
        "network_test_accuracy",
    ]
    share = tree.observed["between_class_share"]
    assert 0 < float(share[0, 0]) < 0.5 < float(share[0, -1]) <= 1


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
        ("starts", 1),
        ("batch_size", 301),
        ("networks", ["transformer"]),
        ("labels", ["wrong labels"]),
        ("seed", -1),
    ],
)
def test_a_field_out_of_range_is_rejected_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        NeuralCollapse(**{**NeuralCollapse.tiny, "networks": ["mlp"], "starts": 2, field: value})
    assert refusal.value.argument == field


@pytest.mark.slow
@pytest.mark.parametrize(("end", "verdict"), [(0.01, "agree"), (0.5, "disagree")])
def test_the_collapse_of_networks_decides_the_verdict(monkeypatch, end, verdict):
    measure = CollapsingNetworks.measure

    def collapsed(self):
        found = measure(self)
        axes, nc1 = found["network_nc1"]
        course = np.geomspace(1, end, nc1.shape[-1]) ** np.array([[1.0], [1.01]])
        learned = {"network_accuracy": (axes, np.ones_like(nc1))}
        return found | learned | {"network_nc1": (axes, np.broadcast_to(course, nc1.shape))}

    monkeypatch.setattr(CollapsingNetworks, "measure", collapsed)
    networks = {"networks": ["mlp"], "labels": ["true labels"], "samples": 50, "width": 6, "steps": 5, "batch_size": 10}
    tree = NeuralCollapse(**NeuralCollapse.tiny | networks | {"starts": 2}).run()
    assert tree.verdict.outcome == verdict, tree.verdict.sentence


def outcomes(labels, ends, accuracy=1.0):
    nc1 = np.ones((1, 2, 2, 3))
    nc1[0, 0, :, -1] = ends
    return [each.outcome for each in collapse_claims(["mlp"], labels, nc1, np.full(nc1.shape, accuracy))]


@pytest.mark.parametrize(
    ("ends", "outcome"), [((0.010, 0.011), "holds"), ((0.50, 0.55), "does not hold"), ((0.01, 0.5), "undecided")]
)
def test_classes_collapse_if_their_spread_falls_to_a_tenth(ends, outcome):
    assert outcomes(LABELS[2:], ends) == [outcome, "does not hold"]


def test_collapse_is_undecided_if_the_labels_are_not_learned():
    assert outcomes(LABELS[2:], (0.010, 0.011), accuracy=0.98) == ["undecided", "undecided"]


def test_a_regression_does_not_decide_the_verdict():
    assert deciding_claims(["mlp"], LABELS[2:]) == ("mlp, 100 % random labels",)
