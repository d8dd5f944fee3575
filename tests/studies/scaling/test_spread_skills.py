from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.scaling.spread_skills import spread_parities, spread_samples


@pytest.mark.parametrize("count", [1, 3, 4])
def test_the_functions_of_a_skill_are_orthonormal_and_add_up_to_its_parity(count):
    features, sign = spread_parities(2, 3, count, np.random.default_rng(1))
    assert np.all(abs(sign) == 1)
    assert sign.sum() == 0
    for each in features:
        assert each.T @ each / len(sign) == pytest.approx(np.eye(count), abs=1e-12)
        assert each.sum(axis=1) / np.sqrt(count) == pytest.approx(sign, abs=1e-12)


def test_a_sample_has_features_of_its_own_skill_only_and_the_first_is_its_sign():
    inputs, sign = spread_samples(np.array([3, 0, 2]), 4, np.random.default_rng(0))
    blocks = inputs.reshape(5, 3, 4)
    for row, skill in enumerate([0, 0, 0, 2, 2]):
        assert blocks[row, skill, 0] == sign[row] in (-1, 1)
        assert np.all(blocks[row, skill, 1:] != 0)
        assert np.count_nonzero(blocks[row]) == 4
