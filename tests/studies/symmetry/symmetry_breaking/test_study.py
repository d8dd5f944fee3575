from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import QueryValueBiases, language_model
from dynascope.studies.symmetry.symmetry_breaking.cells import Measured
from dynascope.studies.symmetry.symmetry_breaking.claims import breaking_claims, deciding_claims
from dynascope.studies.symmetry.symmetry_breaking.keys import keys
from dynascope.studies.symmetry.symmetry_breaking.rotation import rotated
from dynascope.studies.symmetry.symmetry_breaking.study import SymmetryBreaking

UNTRAINED = 3.0  # loss of networks that know only the frequencies of the characters
TOKENS = np.random.default_rng(0).integers(11, size=(3, 5))


def trained_like(broken):
    """A network whose weights and biases are all random."""
    network = language_model(11, 5, width=12, heads=3, blocks=2, broken_symmetry="resampled" if broken else None)
    draw = np.random.default_rng(1)
    return jax.tree.map(
        lambda leaf: leaf + 0.3 * draw.normal(size=leaf.shape) if eqx.is_inexact_array(leaf) else leaf, network
    )


@pytest.mark.parametrize("broken", [False, True])
def test_rotations_that_keep_the_mean_bias_change_no_output(broken):
    network, bias = trained_like(broken), QueryValueBiases().means(4)[0]
    with jax.enable_x64(True):
        moved = rotated(network, bias, np.random.default_rng(2))
        np.testing.assert_allclose(moved(TOKENS), network(TOKENS), atol=1e-12)
        assert np.abs(moved.blocks[0].queries - network.blocks[0].queries).max() > 0.1


def test_rotations_of_the_mean_bias_change_the_outputs_of_broken_attention():
    other = np.array([1.0, 0.0, 0.0, 0.0])
    with jax.enable_x64(True):
        for broken in (False, True):
            network = trained_like(broken)
            moved = rotated(network, other, np.random.default_rng(2))
            assert (np.abs(np.asarray(moved(TOKENS) - network(TOKENS))).max() > 1e-3) == broken


def test_keys_are_projections_of_the_normalised_stream():
    network = trained_like(broken=True)
    with jax.enable_x64(True):
        found = keys(network, TOKENS)
        block = network.blocks[0]
        stream = jnp.asarray(network.embedding[TOKENS] + network.positions[:5])
        flat = np.asarray(block.attention_normalisation(stream)).reshape(15, 12) @ block.keys
    assert found.shape == (2, 3, 15, 4)
    np.testing.assert_allclose(found[0], np.moveaxis(flat.reshape(15, 3, 4), 1, 0), atol=1e-12)


def measured(gain, names=("AdamW", "SGD", "ECD")):
    """Eight runs in which broken symmetry improves SGD and ECD by about `gain`, and AdamW not at all."""
    draw = np.random.default_rng(0)
    helped = np.array([0.0, 1.0, 1.0])[:, None, None] * np.array([0.0, 1.0])[:, None]
    noise = 0.01 * draw.normal(size=(3, 2, 8))
    return Measured(
        tuned_rate=np.ones((3, 2)),
        tuning_loss=np.ones((3, 2, 4)),
        test_loss=2.0 - gain * helped + noise,
        known_accuracy=0.7 + gain * helped + noise,
        longer_accuracy=0.6 + gain * helped + noise,
        alignment=gain * helped[..., None] + noise[..., None],
        rotated_loss=np.ones((3, 2)),
    )


@pytest.mark.parametrize(("gain", "outcome"), [(0.3, "holds"), (-0.3, "does not hold")])
def test_claims_follow_the_effect(gain, outcome):
    names, classes = ["AdamW", "SGD", "ECD"], ["letters"]
    claims = breaking_claims(measured(gain), names, classes, UNTRAINED)
    assert {each.name for each in claims} == set(deciding_claims(names, classes))
    assert {each.outcome for each in claims} == {outcome}


def test_no_effect_decides_no_claim():
    claims = breaking_claims(measured(0.0), ["AdamW", "SGD", "ECD"], ["letters"], UNTRAINED)
    assert "holds" not in {each.outcome for each in claims}


def test_networks_that_guess_do_not_decide_claims_about_questions():
    guessing = measured(0.3)._replace(known_accuracy=np.full((3, 2, 8), 0.5))
    outcomes = {
        each.name: each.outcome for each in breaking_claims(guessing, ["AdamW", "SGD", "ECD"], ["letters"], UNTRAINED)
    }
    assert outcomes["questions, SGD"] == "undecided"
    assert outcomes["longer chains, SGD"] == "holds"


def test_networks_that_know_only_frequencies_do_not_decide_claims_about_keys():
    found = breaking_claims(measured(-0.3), ["AdamW", "SGD", "ECD"], ["letters"], untrained_loss=1.0)
    outcomes = {each.name: each.outcome for each in found}
    assert outcomes["keys, letters"] == "undecided"
    assert outcomes["loss, SGD"] == "does not hold"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"heads": 5}, "heads is 5, and width is 32"),
        ({"longer": 3}, "longer is 3"),
        ({"optimizers": ["AdamW"]}, "optimizers is"),
    ],
)
def test_inconsistent_fields_are_rejected(changed, message):
    with pytest.raises(InputError, match=message):
        SymmetryBreaking(**changed)


def test_a_short_text_is_rejected_before_training(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("too short")
    with pytest.raises(InputError, match="text has 9 characters"):
        SymmetryBreaking(text=str(path)).observe()


def test_the_setting_of_the_paper_has_its_sizes():
    study = SymmetryBreaking(paper=True, width=8, heads=2)
    assert {
        "width": 768,
        "blocks": 12,
        "heads": 12,
        "context": 512,
        "paper": True,
    }.items() <= study.parameters().items()
    assert "512 characters" in study.about()["description"][0]


@pytest.mark.slow
def test_the_small_setting_measures_every_cell():
    study = dataclasses.replace(SymmetryBreaking(**SymmetryBreaking.tiny))
    result = study.run()
    assert result.observed["loss"].shape == (1, 2, 2)
    assert np.all(result.observed["loss"] < np.log(100))
    np.testing.assert_allclose(result.observed["rotated_loss"], 1, atol=1e-9)
