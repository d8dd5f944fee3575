from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.regimes.lazy_claims import final_features, put_claims

METRICS = ("kappa_cka", "effective_dimension", "feature_similarity", "final_test_error")


def test_features_that_stay_are_similar_to_themselves_and_others_are_not():
    draw = np.random.default_rng(0)
    before, labels = draw.normal(size=(2, 40, 6)), np.eye(2)[draw.integers(0, 2, 40)]
    outputs = before @ draw.normal(size=(6, 2))
    features = np.stack([3 * before[0], draw.normal(size=(40, 6))])
    found = final_features(features, outputs, before, labels)
    assert found["feature_similarity"][0] == pytest.approx(1.0)
    assert found["feature_similarity"][1] < 0.5
    assert all(len(values) == 2 for values in found.values())
    # Of outputs in two directions and features in six.
    assert 0 < found["kappa_cka"][0] < 1


def test_claims_compare_ever_smaller_targets_and_the_laziest_network_with_its_limits():
    draw = np.random.default_rng(1)
    scaled = [{name: level + 0.01 * draw.normal(size=5) for name in METRICS} for level in (0.1, 0.3, 0.5)]
    near, far = 0.1 + 0.01 * draw.normal(size=5), 0.9 + 0.01 * draw.normal(size=5)
    scaled[-1] |= {"distance_to_linearised": near, "distance_to_last_layer": far}
    claims, effects = put_claims(scaled, {"kappa_cka": np.full(5, 0.2)})
    found = {claim.name: effect.holds for claim, effect in zip(claims, effects, strict=True)}
    assert found == {"H5": "does not hold", **{f"H{k}": "holds" for k in (1, 2, 3, 4, 6)}}
