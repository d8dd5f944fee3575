from __future__ import annotations

import dataclasses

import numpy as np
import optax
import pytest
from PIL import Image
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies.symmetry.neural_mechanics import experiment
from dynascope.studies.symmetry.neural_mechanics.study import NeuralMechanics

STUDY = NeuralMechanics(**NeuralMechanics.tiny)


@pytest.fixture(scope="module")
def tree():
    return tiny_run("neural-mechanics").tree


def outcomes(tree) -> dict[str, str]:
    return {name: each.outcome for name, each in tree.claims.items() if each.decides}


@pytest.mark.slow
def test_every_layer_follows_both_laws_and_no_other(tree):
    assert tree.verdict.outcome == "agree"
    assert set(outcomes(tree).values()) == {"holds"}
    found = tree.observed
    assert float(found["exact_error"].max()) < 1e-10 < 1e-5 < float(found["continuous_error"].min())
    # What is compared did move.
    moved = abs(found["measured_charge"] - found["measured_charge"][0]).max("step")
    assert float(moved.min()) > 1e-4
    drawn = tree.predicted["measured_charge"] - found["measured_charge"]
    assert 0 < float(abs(drawn).max()) < 0.05 * float(moved.max())


@pytest.mark.slow
def test_the_continuous_law_is_better_at_smaller_rates(tree):
    slower = dataclasses.replace(STUDY, learning_rate=STUDY.learning_rate / 2, steps=2 * STUDY.steps).run()
    errors = [each.observed["continuous_error"].to_numpy() for each in (slower, tree)]
    # Of first order or better, but for the batches, which differ.
    assert np.all(errors[0] < 0.75 * errors[1])


@pytest.mark.slow
def test_a_continuous_law_with_another_push_is_refuted(monkeypatch):
    law = experiment.charge_integral
    monkeypatch.setattr(experiment, "charge_integral", lambda start, pushes, sgd: law(start, 1.2 * pushes, sgd))
    tree = dataclasses.replace(STUDY).run()
    assert tree.verdict.outcome == "disagree"
    assert {kind for kind, outcome in outcomes(tree).items() if outcome == "does not hold"} == {"scale", "rescale"}


@pytest.mark.slow
def test_another_optimiser_than_declared_is_a_fault_of_the_measurement(monkeypatch):
    def nesterov(optimizer, decay, *, momentum):
        return lambda rate: optax.chain(optax.add_decayed_weights(decay), optimizer(rate, momentum, nesterov=True))

    monkeypatch.setattr(experiment, "decayed", nesterov)
    tree = dataclasses.replace(STUDY).run()
    assert tree.verdict.outcome == "undecided"
    assert not all(each.agrees for each in tree.checks.values())


@pytest.mark.slow
def test_charges_that_cannot_tell_two_optimisers_apart_refute_the_claim(tree):
    found = {name: (values.dims, values.to_numpy()) for name, values in tree.observed.items()}
    axes, excess = found["excess"][0], found["excess"][1].copy()
    # One layer, of one declaration.
    excess[0, -1] = 0.9
    claims = {claim.name: claim.outcome for claim in STUDY.claimed(found | {"excess": (axes, excess)})}
    assert claims == {
        "translation": "holds",
        "scale": "holds",
        "rescale": "holds",
        "another optimiser": "does not hold",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Colour images of noise in two folders."""
    found, draw = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for name in ("cat", "dog"):
        (found / name).mkdir()
        for number in range(15):
            pixels = draw.integers(256, size=(4, 4, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(found / name / f"{number}.png")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("network", [{}, {"network": "vgg16", "width": 1}], ids=["small", "vgg16"])
def test_charges_of_every_layer_follow_the_law_of_the_steps_on_files_of_images(folder, network):
    study = dataclasses.replace(STUDY, data=str(folder), samples=24, batch_size=10, steps=150, **network)
    tree = study.run()
    found = tree.observed
    assert (found["within_rounding"] == 1).all()
    # What is compared did move, and the law tells how.
    assert float(found["exact_error"].max()) < 1e-9
    assert outcomes(tree) == dict.fromkeys(("translation", "scale", "rescale", "another optimiser"), "holds")
    layers = {path for each in study.experiment.symmetries for path in each.paths}
    kernels = 13 if study.network == "vgg16" else 1
    assert sum("kernel" in path for path in layers) == kernels


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("steps", {"steps": 149}),
        ("steps", {"steps": 200, "momentum": 0.96}),
        ("weight_decay", {"weight_decay": 1.0}),
        ("weight_decay", {"weight_decay": 0.0}),
        ("momentum", {"momentum": 0.0}),
        ("channels", {"channels": [1, 2, 3, 4]}),
        ("channels", {"channels": []}),
        ("samples", {"samples": 1798}),
        ("batch_size", {"batch_size": 1000}),
    ],
)
def test_bad_fields_are_named(argument, change):
    with pytest.raises(InputError) as caught:
        NeuralMechanics(**change)
    assert caught.value.argument == argument
