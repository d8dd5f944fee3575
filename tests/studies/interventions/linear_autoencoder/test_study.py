from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.results import validate_record
from dynascope.studies import find_study
from dynascope.studies.interventions.linear_autoencoder.experiment import Reconstruction
from dynascope.studies.interventions.linear_autoencoder.hessian import hessian_spectrum
from dynascope.theory.interventions import (
    autoencoder_critical_points,
    autoencoder_hessian_spectrum,
    autoencoder_loss,
    critical_autoencoder,
)

LinearAutoencoder = find_study("linear-autoencoder")


@pytest.fixture(scope="module")
def study():
    return LinearAutoencoder(**LinearAutoencoder.tiny)


@pytest.fixture(scope="module")
def result(study):
    return study.run()


@pytest.mark.slow
def test_at_a_small_size_theory_and_training_agree(result):
    assert result.verdict.outcome == "agree", result.verdict.sentence
    assert {each.outcome for each in result.claims.values()} == {"holds"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("saddle_loss", lambda values: values + 0.01 * values.max()),
        (
            "saddle_hessian",
            lambda values: values.isel(level=slice(None, None, -1)).assign_coords(level=values["level"]),
        ),
        ("loss", lambda values: values.roll(time=3)),
        ("decoder_strength", lambda values: values**2),
    ],
)
def test_another_theory_turns_the_verdict(study, result, name, change):
    wrong = result.predicted.assign({name: change(result.predicted[name])})
    assert study.compared(result.observed, validate_record(wrong)).verdict.outcome == "disagree"


@pytest.mark.slow
def test_the_signs_of_the_measured_spectra_are_the_predicted_indices(study, result):
    points = autoencoder_critical_points(study.singular_values, study.latents, study.regularization)
    spectra = result.observed["saddle_hessian"]
    for level, spectrum in zip(spectra["level"].to_numpy(), spectra.to_numpy(), strict=True):
        row = np.argmax((points.learned == (np.arange(len(study.singular_values)) < level)).all(axis=1))
        # The smallest eigenvalue that is not zero is 0.5 at these settings.
        assert np.sum(spectrum < -0.1) == points.index[row]
        assert np.sum(np.abs(spectrum) < 0.1) == points.nullity[row]


@pytest.mark.slow
def test_the_first_initialisation_decides_neither_claim_nor_ladder(result):
    other = LinearAutoencoder(**LinearAutoencoder.tiny | {"seed": 100}).run()
    assert other.verdict.outcome == "agree"
    assert not np.allclose(other.observed["direction_overlap"][0], result.observed["direction_overlap"][0])


@pytest.mark.slow
def test_the_loss_and_its_hessian_are_those_of_theory():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(5, 3))
    a, b = critical_autoencoder(x, [1], 2, 0.4)
    task = Reconstruction(x.T @ x, np.asarray(0.0), np.asarray(0.4))
    sigma = np.linalg.svd(x, compute_uv=False)
    with jax.enable_x64(True):
        spectrum = hessian_spectrum(task, a, b)
        network = type("Layers", (), {"weights": (a, b + 1.0)})
        loss = float(task.loss(network))
    np.testing.assert_allclose(spectrum, autoencoder_hessian_spectrum(sigma, [1], 2, 0.4), atol=1e-10)
    # The loss of samples and the loss of their moments differ by rounding.
    assert loss == pytest.approx(autoencoder_loss(x, a, b + 1.0, 0.4).value, rel=1e-12)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("singular_values", {"singular_values": [1.0, 2.0, 3.0]}),
        ("singular_values", {"singular_values": [2.0, 2.0, 1.0]}),
        ("singular_values", {"singular_values": [2.0]}),
        ("latents", {"latents": 5}),
        ("regularization", {"regularization": -0.1}),
        ("regularization", {"regularization": 3.0}),
        ("regularization", {"regularization": 0.25}),  # the square of the last singular value
        ("scale", {"scale": 0.1}),
        ("scale", {"scale": 0.0}),
        ("starts", {"starts": 2}),
        ("times", {"times": 5}),
    ],
)
def test_a_field_outside_its_domain_is_rejected_by_name(field, changes):
    with pytest.raises(InputError) as caught:
        LinearAutoencoder(**changes)
    assert caught.value.argument == field
