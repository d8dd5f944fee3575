from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.tasks.sample_checks import check_samples


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e151, 1e300])
@pytest.mark.parametrize("name", ["x", "y"])
def test_values_whose_squares_are_no_numbers_are_refused_by_name(name, size):
    samples = {"x": np.eye(3), "y": np.ones((3, 1))}
    samples[name] = size * samples[name]
    with pytest.raises(InputError, match="choose units") as refused:
        check_samples(**samples)
    assert refused.value.argument == name


def test_what_is_all_zero_is_in_any_units():
    check_samples(np.eye(3), np.zeros((3, 1)))
