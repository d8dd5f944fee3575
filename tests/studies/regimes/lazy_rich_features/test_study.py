from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.regimes.lazy_rich_features.study import LazyRichFeatures

TINY = LazyRichFeatures(**LazyRichFeatures.tiny)


def drawn(seed: int) -> LazyRichFeatures:
    draw = np.random.default_rng(seed)
    return dataclasses.replace(
        TINY,
        activation=str(draw.choice(["tanh", "erf", "gelu"])),
        lazy=[float(each) for each in np.sort(draw.uniform(300, 3000, 2))],
        duration=float(draw.uniform(10, 100)),
        factor=float(draw.uniform(2, 30)),
        scalar_neurons=int(2 * draw.integers(1, 5)),
        scalar_target=float(draw.uniform(0.5, 5)),
        seed=seed,
    )


@pytest.fixture(scope="module")
def tree():
    return drawn(1).run()


@pytest.mark.slow
def test_random_networks_on_random_samples_are_lazy_as_predicted(tree):
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


@pytest.mark.slow
def test_small_targets_lead_to_the_linearised_network_in_proportion_and_not_to_the_last_layer(tree):
    observed, lazy = tree.observed, drawn(1).lazy
    near, far = (
        observed[name].sel(run=[f"target / {alpha:.9g}" for alpha in lazy]).to_numpy()
        for name in ("distance_to_linearised", "distance_to_last_layer")
    )
    # Up to the next order, a hundredth.
    np.testing.assert_allclose(near[0] / near[1], lazy[1] / lazy[0], rtol=0.02)
    assert np.all(far > 10 * near)
    limit = observed["distance_to_linearised"].sel(run="last layer only").to_numpy()
    np.testing.assert_allclose(far[1], limit, rtol=0.02)


@pytest.mark.slow
def test_all_ways_to_the_same_richness_and_the_lazier_widths_are_there(tree):
    growth = tree.observed["final_log_growth"].to_numpy()
    np.testing.assert_allclose(growth[1:4], growth[1], rtol=1e-7)
    assert np.all(np.diff(growth[4:]) < 0)


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["loss", "test_error", "correction", "feature_movement", "lazy_kappa_cka"])
def test_another_expansion_is_refuted(tree, quantity):
    observed, predicted = tree.observed, tree.predicted
    wrong = drawn(1).compared(observed, predicted.assign({quantity: 1.05 * predicted[quantity]}))
    assert wrong.verdict.outcome == "disagree"


@pytest.mark.slow
def test_features_are_reported_on_and_not_judged(tree):
    judged = tree.quantities
    assert {name.removesuffix("_maximum") for name in judged} == {
        *("loss", "test_error", "correction", "feature_movement", "lazy_kappa_cka")
    }
    assert tree.claims.keys() == {*tree.observed["hypothesis"].to_numpy()}
    assert not any(each.decides for each in tree.claims.values())
    assert set(tree.observed["holds"].to_numpy()) <= {"holds", "does not hold", "undecided"}
    for name in ("feature_similarity", "effective_dimension", "distance_to_last_layer"):
        assert name in tree.observed
        assert name not in judged


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"activation": "relu"}, "activation"),
        ({"samples": 5}, "samples"),
        ({"width": 3}, "width"),
        ({"seeds": 1}, "seeds"),
        ({"lazy": []}, "lazy"),
        ({"lazy": [2.0]}, "lazy"),
        ({"lazy": [300.0, 1e9]}, "lazy"),
        ({"rich": [3.0, 1.0]}, "rich"),
        ({"duration": -1.0}, "duration"),
        ({"times": 1}, "times"),
        ({"scalar_neurons": 3}, "scalar_neurons"),
        ({"scalar_target": 0.0}, "scalar_target"),
        ({"factor": -1.0}, "factor"),
    ],
)
def test_bad_fields_are_named(monkeypatch, fields, argument):
    monkeypatch.setattr(
        "dynascope.studies.regimes.lazy_rich_features.experiment.train", lambda *_, **__: pytest.fail("it was trained")
    )
    for side in ("observe", "predict"):
        with pytest.raises(InputError) as caught:
            getattr(dataclasses.replace(TINY, **fields), side)()
        assert caught.value.argument == argument


@pytest.mark.slow
def test_factors_at_which_the_expansion_does_not_end_after_two_orders_are_refused():
    with pytest.raises(InputError, match="second order") as caught:
        dataclasses.replace(TINY, rich=[1.0], lazy=[3.0, 300.0]).predict()
    assert caught.value.argument == "lazy"
