from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies import find_study
from dynascope.studies.linear_networks.single_neuron.experiment import Experiment

SingleNeuron = find_study("single-neuron")


@pytest.fixture(scope="module")
def tiny():
    return tiny_run("single-neuron")


# Sizes for which programs are compiled once.
LOW_RANK = {"inputs": "low-rank", "dimension": 3, "samples": 6, "times": 40}


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    return SingleNeuron(
        imbalance=float(draw.choice([-1, 1]) * draw.uniform(0.2, 6)),
        initial_strength=float(10 ** draw.uniform(-3, 0)),
        alignment=float(draw.uniform(-0.5, 1)),
        output_rate=float(np.exp(0.5 * draw.normal())),
        weight_rate=float(np.exp(0.5 * draw.normal())),
        **LOW_RANK,
        seed=seed,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_theory_and_experiment_agree_at_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    # By then all three have learned; otherwise agreement would be cheap.
    loss = tree.observed["loss"]
    assert float((loss[:, -1] / loss[:, 0]).max()) < 1e-9


@pytest.mark.slow
def test_the_direction_that_is_never_seen_is_left_alone_upstream_and_rescaled_downstream():
    study = SingleNeuron(imbalance=20.0, **LOW_RANK)
    _, _, right = np.linalg.svd(Experiment(study).task.inputs)
    unseen = study.predict()["coefficients"].to_numpy() @ right[-1]
    # In the kernel limit the map moves along the data only; the others grow as their output weight does.
    upstream, balanced, downstream = unseen[:, -1] / unseen[:, 0]
    assert abs(upstream - 1) < 0.01
    assert min(abs(balanced), abs(downstream)) > 2


@pytest.mark.slow
def test_the_regime_of_each_imbalance_is_recorded_and_that_of_the_asked_one_first():
    predicted = SingleNeuron(**SingleNeuron.tiny | {"imbalance": -20.0, "alignment": 0.02}).predict().record
    assert predicted["imbalance"].to_numpy().tolist() == [-20.0, 0.0, 20.0]
    assert predicted["regime"].to_numpy().tolist() == ["delayed rich", "rich", "lazy"]
    assert predicted.attrs["regime"] == "delayed rich"
    # The kernel of the lazy neuron hardly moves, and that of the others does.
    moved = predicted["kernel_change"][:, -1]
    assert float(moved[2]) < 0.1 < float(moved[:2].min())


@pytest.mark.slow
def test_another_regime_than_theory_says_refutes_it(monkeypatch):
    study = SingleNeuron(**SingleNeuron.tiny | {"imbalance": -20.0, "alignment": 0.02})
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.observed["regime"].to_numpy().tolist() == ["delayed rich", "rich", "lazy"]
    monkeypatch.setattr(Experiment, "predicted_regimes", np.array(["rich", "rich", "lazy"]))
    study = SingleNeuron(**dataclasses.asdict(study))
    tree = study.compare(study.observe(), study.predict())
    assert tree.verdict.outcome == "disagree"


def test_all_three_start_from_the_same_function_with_the_imbalance_that_is_asked_for():
    study = SingleNeuron(imbalance=2.5, output_rate=0.5, weight_rate=3.0)
    a, w = Experiment(study).start
    np.testing.assert_allclose(3.0 * a**2 - 0.5 * np.sum(w**2, axis=1), [2.5, 0.0, -2.5], atol=1e-14)
    np.testing.assert_allclose(a[:, None] * w, np.broadcast_to(a[0] * w[0], w.shape), atol=1e-15)


@pytest.mark.slow
def test_inputs_on_a_line_agree_though_their_kernel_never_turns():
    tree = SingleNeuron(**SingleNeuron.tiny | {"inputs": "low-rank", "imbalance": 0.6, "alignment": -0.6}).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


@pytest.mark.slow
def test_an_imbalance_of_zero_is_shown_alone():
    tree = SingleNeuron(**SingleNeuron.tiny | {"imbalance": -0.0}).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.predicted["imbalance"].to_numpy().tolist() == [0.0]


@pytest.mark.slow
def test_a_wrong_limit_refutes_it(tiny):
    predicted = tiny.predicted
    tree = tiny.study.compared(tiny.observed, predicted.assign(interpolator=1.001 * predicted["interpolator"]))
    assert tree.verdict.outcome == "disagree"
    agreement = tree.quantities
    failed = {name.removesuffix("_maximum") for name, each in agreement.items() if not each.agrees}
    assert failed == {"interpolator"}
    assert "interpolator_residual" in tree.residual


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("imbalance", bad) for bad in (np.nan, np.inf)),
        *(("initial_strength", bad) for bad in (0.0, -1.0, np.nan)),
        *(("alignment", bad) for bad in (-1.0, 1.1, np.nan)),
        ("output_rate", 0.0),
        ("weight_rate", -1.0),
        ("inputs", "white"),
        ("dimension", 1),
        ("samples", 1),
        ("times", 5),
        ("seed", -1),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        SingleNeuron(**SingleNeuron.tiny | {field: value})
    assert refusal.value.argument == field


@pytest.mark.slow
def test_a_start_from_which_nothing_is_learned_is_refused_before_anything_is_trained():
    with pytest.raises(InputError, match="does not learn within 100 time constants") as refusal:
        SingleNeuron(**SingleNeuron.tiny | {"initial_strength": 1e-150}).predict()
    assert refusal.value.argument == "initial_strength"
