from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import DivergenceError, InputError
from dynascope.studies.grokking.grokking_modular import experiment, measures, modular_names
from dynascope.studies.grokking.grokking_modular import study as grokking_modular
from dynascope.studies.grokking.grokking_modular.study import GrokkingModular

TINY = GrokkingModular(**GrokkingModular.tiny)


def drawn(seed: int, **fields: Any) -> GrokkingModular:
    draw = np.random.default_rng(seed)
    chosen = {
        "operation": str(draw.choice(["addition", "subtraction", "multiplication", "division"])),
        "p": int(draw.choice([5, 7])),
        "train_fraction": float(draw.uniform(0.5, 0.8)),
        "width": int(draw.choice([16, 32])),
        "loss": str(draw.choice(["cross_entropy", "squared"])),
        "learning_rate": float(draw.uniform(0.001, 0.01)),
        "weight_decay": float(draw.uniform(0, 2)),
        "steps": int(draw.integers(20, 200)),
    }
    return GrokkingModular(**chosen, times=4, seeds=2, seed=seed, **fields)


def checked(tree) -> dict[str, bool]:
    return {name: each.agrees for name, each in tree.checks.items()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_checks_pass_for_random_fields(seed):
    tree = drawn(seed, network="quadratic").run()
    assert all(checked(tree).values()), tree.verdict.sentence


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2])
def test_checks_pass_for_random_transformers(seed):
    tree = drawn(seed, network="transformer").run()
    assert all(checked(tree).values()), tree.verdict.sentence
    assert "unused_weight" not in checked(tree)


@pytest.mark.slow
def test_a_wrongly_renamed_table_fails_the_check(monkeypatch):
    truth = modular_names.renamed_results

    def with_one_error(operation, p, pairs):
        results = truth(operation, p, pairs)
        return np.append((results[0] + 1) % p, results[1:])

    monkeypatch.setattr(modular_names, "renamed_results", with_one_error)
    study = dataclasses.replace(TINY, steps=2, times=2)
    tree = study.run()
    assert tree.verdict.outcome == "undecided"
    assert [name for name, agrees in checked(tree).items() if not agrees] == ["renamed_loss", "renamed_loss_maximum"]


@pytest.mark.parametrize("operation", ["addition", "subtraction"])
def test_addition_and_subtraction_accept_a_modulus_that_is_not_prime(operation):
    study = dataclasses.replace(TINY, p=6, operation=operation)
    assert np.all(study.predict()["renamed_loss"] == 1)
    table, names = study._runs.tables[0], modular_names.other_names(operation, 6)
    renamed = modular_names.renamed_results(operation, 6, names[table.pairs])
    np.testing.assert_array_equal(renamed, names[table.results])


@pytest.mark.slow
def test_a_network_that_ignores_its_inputs_raises_divergence(monkeypatch):
    truth = measures.measure

    def dead(*given):
        measured = truth(*given)
        return measured._replace(features=0 * measured.features)

    monkeypatch.setattr(experiment, "measure", dead)
    with pytest.raises(DivergenceError, match="larger width") as caught:
        TINY.observe()
    assert caught.value.time == 0


def mean_loss(outputs, targets, loss: str):
    if loss == "squared":
        return 0.5 * ((outputs - targets) ** 2).sum(axis=1).mean()
    return -(targets * jax.nn.log_softmax(outputs)).sum(axis=1).mean()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
def test_training_matches_adamw_written_out(loss):
    rate, decay, steps = 0.01, 0.5, 7
    study = dataclasses.replace(TINY, loss=loss, learning_rate=rate, weight_decay=decay)
    tasks = [each.train for each in study._runs.tables]
    with jax.enable_x64(True):
        every = study._runs._train(study._runs._networks, tasks, [0, 3, steps], np.float64)
        end = jax.tree.map(lambda leaf: leaf[:, -1], every)
        for seed, (network, task) in enumerate(zip(study._runs._networks, tasks, strict=True)):
            weights = {"first": network.first, "second": network.second}
            means = {name: np.zeros_like(w) for name, w in weights.items()}
            squares = {name: np.zeros_like(w) for name, w in weights.items()}
            slope = jit(
                jax.grad(
                    lambda w, task=task: mean_loss(
                        jax.nn.relu(task.inputs @ w["first"]) @ w["second"], task.targets, loss
                    )
                )
            )
            for step in range(1, steps + 1):
                for name, g in slope(weights).items():
                    means[name] = 0.9 * means[name] + 0.1 * np.asarray(g)
                    squares[name] = 0.98 * squares[name] + 0.02 * np.asarray(g) ** 2
                    move = (means[name] / (1 - 0.9**step)) / (np.sqrt(squares[name] / (1 - 0.98**step)) + 1e-8)
                    weights[name] = weights[name] - rate * (move + decay * weights[name])
            # Rounding, which moments near zero enlarge.
            np.testing.assert_allclose(end.first[seed], weights["first"], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(end.second[seed], weights["second"], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_one_diverging_network_raises_divergence():
    with pytest.raises(DivergenceError):
        dataclasses.replace(TINY, loss="squared", learning_rate=1e20, weight_decay=0.0).run()
    study = dataclasses.replace(TINY, loss="squared", weight_decay=0.0, seeds=2)
    vars(study._runs)["_networks"] = [
        study._runs._networks[0],
        jax.tree.map(lambda leaf: 1e18 * leaf, study._runs._networks[1]),
    ]
    with pytest.raises(DivergenceError):
        study.run()


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"weight_decay": 0.9}, {"network": "quadratic"}])
def test_predictions_for_other_fields_fail_the_checks(change):
    predicted = dataclasses.replace(TINY, **change).predict().record
    assert not all(checked(TINY.compared(TINY.observe().record, predicted)).values())


@pytest.mark.slow
def test_the_delay_matches_the_recorded_accuracies():
    study = dataclasses.replace(TINY, train_threshold=0.4, test_threshold=1.0)
    observed = study.observe().record
    for run in (observed.sel(seed=seed) for seed in study._runs._seeds):
        assert bool(run["fitted"])
        first = run["step"][run["accuracy"] >= 0.4][0]
        assert float(run["train_step"]) == first
        # Eight pairs that are not in the training set are not all learned this early.
        assert not bool(run["generalised"])
        assert float(run["delay"]) == float(run["step"][-1] - first)
    # A threshold that was not reached lies beyond all recorded steps.
    assert observed["high"].to_numpy()[0] == observed["low"].to_numpy()[0] == np.inf
    assert observed["holds"].to_numpy()[0] == "holds"
    assert observed["delay_resolution"].dims == ("seed",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("train", "test", "verdict"),
    [
        ((100.0, 120.0) * 3, (900.0, 930.0) * 3, "agree"),
        ((900.0, 930.0) * 3, (100.0, 120.0) * 3, "disagree"),
        ((100.0, 900.0) * 3, (900.0, 100.0) * 3, "undecided"),
        ((100.0, 120.0) * 3, (900.0, 930.0) * 2 + (900.0, None), "agree"),  # which is later than all that was seen
        ((100.0, 120.0) * 2 + (100.0, None), (900.0, 930.0) * 3, "undecided"),
        ((100.0, 120.0), (900.0, 930.0), "undecided"),  # of two runs the median is not known
    ],
)
def test_the_order_of_fitting_and_generalising_decides_the_verdict(monkeypatch, train, test, verdict):
    seen = iter(zip(train, test, strict=True))
    truth = grokking_modular.grokking_delay

    def told(*given):
        first, second = next(seen)
        return truth(*given)._replace(train_step=first, test_step=second)

    monkeypatch.setattr(grokking_modular, "grokking_delay", told)
    tree = dataclasses.replace(TINY, seeds=len(train), steps=2, times=2).run()
    assert tree.verdict.outcome == verdict
    assert [name for name, each in tree.claims.items() if each.decides] == ["H1"]
    assert tree.quantities == {}


@pytest.mark.slow
def test_a_quadratic_network_groks_division():
    study = GrokkingModular(network="quadratic", p=23, train_fraction=0.7, loss="squared", steps=600, times=30, seeds=2)
    observed = study.observe()
    assert np.all(observed["generalised"])
    # 149 in a run with three times as many steps.
    assert np.all(observed["delay"] > 50)
    # 0.27 after 2000 steps.
    assert np.all(observed["kappa_cka"].isel(step=-1) < 0.35)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("operation", {"operation": "power"}),
        ("p", {"p": 9, "operation": "multiplication"}),
        ("p", {"p": 9}),
        ("p", {"p": 2, "operation": "addition"}),
        ("train_fraction", {"train_fraction": 0.2}),
        ("train_fraction", {"train_fraction": 1.0}),
        ("network", {"network": "vgg"}),
        ("width", {"width": 0}),
        ("width", {"width": 20, "network": "transformer"}),
        ("loss", {"loss": "hinge"}),
        ("learning_rate", {"learning_rate": 0.0}),
        ("weight_decay", {"weight_decay": -1.0}),
        ("steps", {"steps": 0}),
        ("times", {"times": 1}),
        ("times", {"times": -1}),
        ("seeds", {"seeds": 1}),
        ("seed", {"seed": -1}),
        ("train_threshold", {"train_threshold": 0.0}),
        ("test_threshold", {"test_threshold": 1.5}),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_a_field_out_of_range_is_rejected_by_name_before_training(monkeypatch, argument, change):
    monkeypatch.setattr(experiment, "descend_keeping", lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(InputError) as refusal:
        dataclasses.replace(TINY, **change)
    assert refusal.value.argument == argument
