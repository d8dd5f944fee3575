from __future__ import annotations

import numpy as np
import pytest

from dynascope.plot.feature_drawing import find_features
from dynascope.results import make_record


@pytest.mark.parametrize(("shape", "expected"), [([2, 3], (2, 3)), ([8, 8], None), (None, None)])
def test_features_are_pictures_only_where_the_inputs_are(shape, expected):
    predicted = make_record(
        {"input_feature": (["jump", "feature"], np.eye(2, 6))}, {"jump": [1, 2], "feature": np.arange(6)}
    ).assign_attrs(theory="an example", image_shape=shape)
    found = find_features(predicted)
    assert found is not None
    np.testing.assert_array_equal(found.values, np.eye(2, 6))
    assert found.image_shape == expected


def test_of_an_ensemble_the_first_member_is_taken():
    values = np.arange(12.0).reshape(2, 2, 3)
    predicted = make_record(
        {"coefficient": (["seed", "jump", "feature"], values)},
        {"seed": [0, 1], "jump": [1, 2], "feature": np.arange(3)},
    ).assign_attrs(theory="an example")
    found = find_features(predicted)
    assert found is not None
    np.testing.assert_array_equal(found.values, values[0])


def test_a_record_may_name_no_features():
    assert find_features(make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]})) is None
