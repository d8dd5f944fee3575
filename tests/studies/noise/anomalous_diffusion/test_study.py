from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from PIL import Image
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies.noise.anomalous_diffusion import networks as resting_networks
from dynascope.studies.noise.anomalous_diffusion.study import AnomalousDiffusion

STUDY = AnomalousDiffusion(**AnomalousDiffusion.tiny)


@pytest.fixture(scope="module")
def tree():
    return tiny_run("anomalous-diffusion").tree


def outcomes(tree) -> dict[str, str]:
    return {name: each.outcome for name, each in tree.claims.items() if each.decides}


@pytest.mark.slow
def test_spectra_and_networks_wander_as_theory_says(tree):
    assert tree.verdict.outcome == "agree"
    assert outcomes(tree)["p = 2"] == outcomes(tree)["network: slow"] == "holds"
    found, theory = tree.observed, tree.predicted
    # Level and exponent, with three networks, whose squares differ by a fifth.
    assert 0.6 < float(found["forecast_ratio"]) < 1.7
    assert abs(float(found["exponent_off"])) < 0.2
    np.testing.assert_allclose(found["squared_displacement"], theory["squared_displacement"], rtol=0.25)
    assert theory["network_displacement"].identical(
        found["forecast_displacement"].rename("network_displacement").assign_attrs(theory["network_displacement"].attrs)
    )


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["network: forecast", "network: slow"])
def test_a_forecast_of_free_walks_or_walks_that_are_free_are_refuted(tree, claim):
    found = {name: (values.dims, values.to_numpy()) for name, values in tree.observed.items()}
    # Networks of exponent 0.45 against ordinary diffusion; and those that go faster.
    wrong = {"network: forecast": ("exponent_off", "off_low", "off_high", -0.55, -0.65, -0.45)}
    wrong["network: slow"] = ("network_exponent", "network_low", "network_high", 1.2, 1.1, 1.3)
    names, values = wrong[claim][:3], wrong[claim][3:]
    changed = found | {name: ((), np.array(value)) for name, value in zip(names, values, strict=True)}
    told = {each.name: each.outcome for each in STUDY.claimed(changed)}
    assert told[claim] == "does not hold"
    # Of networks whose loss still falls, or that are on their way, nothing is said.
    for moving in ({"loss_change": (("start",), np.full(3, -0.3))}, {"late_exponent": ((), np.array(1.1))}):
        assert {each.name: each.outcome for each in STUDY.claimed(changed | moving)}[claim] == "undecided"


@pytest.mark.slow
def test_a_forecast_from_another_spectrum_is_refuted(monkeypatch):
    """Curvatures that are all zero leave free walks, of exponent one."""
    law = resting_networks.stationary_displacement
    monkeypatch.setattr(resting_networks, "stationary_displacement", lambda rho, *rest, **of: law(0 * rho, *rest, **of))
    tree = dataclasses.replace(STUDY).run()
    assert tree.verdict.outcome == "disagree"
    assert outcomes(tree)["network: forecast"] == "does not hold"


def test_resnet_takes_files_of_images_in_single_precision(tmp_path):
    draw = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for number in range(10):
            pixels = draw.integers(256, size=(8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{number}.png")
    study = dataclasses.replace(STUDY, data=str(tmp_path), network="resnet18", width=1, samples=20, batch_size=10)
    images, network = study.experiment.networks.images, study.experiment.networks.initial(0)
    assert images.inputs.shape == (20, 8, 8, 3)
    assert images.class_names == ("cat", "dog")
    outputs, _ = jax.eval_shape(network.train_step_outputs, images.inputs)
    assert (outputs.shape, outputs.dtype) == ((20, 2), np.float32)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("powers", {"powers": [1.1]}),
        ("powers", {"powers": [0.5], "inputs": 100}),
        ("weight_decay", {"weight_decay": 0.5}),
        ("warm_up", {"warm_up": 1900}),
        ("samples", {"samples": 1798}),
        ("batch_size", {"batch_size": 300}),
        ("starts", {"starts": 2}),
    ],
)
def test_bad_fields_are_named(argument, change):
    with pytest.raises(InputError) as caught:
        AnomalousDiffusion(**change)
    assert caught.value.argument == argument
