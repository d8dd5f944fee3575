from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.studies.grokking.grokking_digits import experiment
from dynascope.studies.grokking.grokking_digits.remedies import DECIDING, TABLE
from dynascope.studies.grokking.grokking_digits.study import GrokkingDigits

TINY = dict(GrokkingDigits.tiny)


@pytest.mark.slow
def test_checks_pass_for_random_factors():
    draw = np.random.default_rng(5)
    # The sizes are those of the other tests, so that the program is compiled once.
    study = GrokkingDigits(
        **TINY
        | {
            "weight_scale": float(draw.uniform(1, 6)),
            "target_scale": float(draw.uniform(1, 4)),
            "large_targets": float(draw.uniform(8, 40)),
            "small_inputs": float(draw.uniform(0.01, 0.4)),
            "small_outputs": float(draw.uniform(0.05, 0.4)),
            "learning_rate": float(draw.uniform(2e-3, 2e-2)),
            "weight_decay": float(10 ** draw.uniform(-5, -2)),
            "seed": 7,
        }
    )
    tree = study.run()
    checks = tree.checks
    assert all(each.agrees for each in checks.values()), tree.verdict.sentence
    observed = tree.observed
    # The compared network has learned.
    assert float(observed["accuracy"].isel(step=-1).max()) > 0.5 > float(observed["accuracy"].isel(step=0).max())
    assert set(checks) == set(study.tolerance)
    assert [name for name, each in tree.claims.items() if each.decides] == list(DECIDING)
    assert set(observed["holds"].to_numpy()) <= {"holds", "does not hold", "undecided"}


@pytest.fixture(scope="module")
def study():
    return GrokkingDigits(**TINY)


@pytest.mark.slow
def test_a_twin_without_its_settings_fails_the_check(study):
    wrong = dataclasses.replace(study)
    runs = dict(study._runs)
    name = "output and decay for target"
    runs[name] = runs[name]._replace(loss=1.0)
    vars(wrong)["_runs"] = runs
    tree = wrong.compare(wrong.observe(), study.predict())
    checks = tree.checks
    assert not checks["loss_ratio"].agrees
    assert checks["blank_weight"].agrees
    assert tree.verdict.outcome == "undecided"
    residual = abs(tree.residual["loss_ratio_residual"]).max(["seed", "step"])
    assert residual.sel(dial=name) > 1e-4
    assert float(residual.drop_sel(dial=name).max()) < 1e-6


@pytest.mark.slow
def test_a_twin_with_another_epsilon_fails_the_check(study):
    wrong, name = dataclasses.replace(study), "output and decay for target"
    trainings = study._trainings

    def at_one_epsilon(run, seed):
        network = trainings._network(run, seed)
        given = trainings._network("default", seed).epsilons
        return eqx.tree_at(lambda each: each.epsilons, network, given) if run == name else network

    vars(wrong._trainings)["_network"] = at_one_epsilon
    tree = wrong.compare(wrong.observe(), study.predict())
    assert not tree.checks["loss_ratio"].agrees
    residual = abs(tree.residual["loss_ratio_residual"]).max(["seed", "step"])
    assert float(residual.drop_sel(dial=name).max()) < 1e-6 < float(residual.sel(dial=name))


@pytest.mark.slow
def test_plain_gradient_descent_fails_the_check(study, monkeypatch):
    def plain(learning_rate):
        def update(updates, state, params=None):
            return jax.tree.map(lambda slope: -learning_rate * slope, updates), state

        return optax.GradientTransformation(lambda params: (), update)

    monkeypatch.setattr("dynascope.studies.grokking.grokking_digits.scaled_network.adam_with_decay", plain)
    tree = dataclasses.replace(study).run()
    assert not tree.checks["loss_ratio"].agrees


@pytest.mark.slow
@pytest.mark.parametrize(("default", "remedy", "verdict"), [(250, 60, "agree"), (60, 250, "disagree")])
def test_the_delay_of_the_remedies_decides_the_verdict(study, monkeypatch, default, remedy, verdict):
    recorded, runs = study._recorded[1:], iter(range(100))
    truth = experiment.grokking_delay

    def told(*given):
        place = next(runs)
        seed, run = divmod(place, len(TABLE))
        late = recorded[recorded >= (remedy if run else default)][seed]
        return truth(*given)._replace(train_step=float(recorded[1]), test_step=float(late))

    monkeypatch.setattr(experiment, "grokking_delay", told)
    tree = study.run()
    assert tree.verdict.outcome == verdict, tree.verdict.sentence
    assert tree.quantities == {}


def test_blank_weights_match_adam_on_weight_decay_alone(study):
    with jax.enable_x64(True):
        weight = study._trainings._network("default", 1).network.weights[0][study._task.blank].astype(float)
        first, adam = np.sqrt(np.mean(weight**2)), optax.adam(study.learning_rate)
        state, sizes = adam.init(weight), []

        @jit
        def step(weight, state):
            updates, state = adam.update(study.weight_decay * weight, state)
            return optax.apply_updates(weight, updates), state

        for _ in range(int(study._recorded[3])):
            weight, state = step(weight, state)
            sizes.append(np.sqrt(np.mean(np.asarray(weight) ** 2)) / first)
    predicted = study.predict()["blank_weight"].sel(run="default", seed=1)
    # Rounding in float64.
    assert predicted.to_numpy()[1:4] == pytest.approx(np.array(sizes)[study._recorded[1:4] - 1], rel=1e-10)


def test_blank_weights_vanish_at_the_rate_of_adam_for_any_weight_decay(study):
    # ε matters if λθ is near 1e-8.
    one, other = (dataclasses.replace(study, weight_decay=decay).predict()["blank_weight"] for decay in (1e-4, 1e-2))
    assert float(abs(one - other).max()) < 0.01
    assert float(one.sel(run="default").isel(step=-1).max()) < 0.1


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"seeds": 1}, "seeds"),
        ({"records": 2}, "records"),
        ({"steps": 10}, "steps"),
        ({"samples": 9, "batch_size": 5}, "samples"),
        ({"samples": 1797}, "samples"),
        ({"test_samples": 9}, "test_samples"),
        ({"batch_size": 121}, "batch_size"),
        ({"small_inputs": 0.0}, "small_inputs"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"test_threshold": float("nan")}, "test_threshold"),
        ({"data": "nowhere"}, "path"),
    ],
)
def test_a_field_out_of_range_is_rejected_by_name_before_training(monkeypatch, fields, argument):
    monkeypatch.setattr(
        "dynascope.studies.grokking.grokking_digits.experiment.train_scaled",
        lambda *_, **__: pytest.fail("it was trained"),
    )
    with pytest.raises(InputError) as refusal:
        GrokkingDigits(**TINY | fields).run()
    assert refusal.value.argument == argument
