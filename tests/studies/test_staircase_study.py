from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.results import Comparison
from dynascope.studies.staircase_study import jump_times


@pytest.mark.parametrize(
    ("predicted", "observed", "numbers"),
    [
        ([], [], []),
        ([2.0], [2.5], ["2", "2.5"]),
        ([2.0], [np.nan], ["2"]),
        ([2.0, 3.0, 7.0], [2.5, 4.0, 8.0], ["2", "7", "2.5", "8"]),
        ([2.0, 3.0, 7.0], [2.5, 4.0, np.nan], ["2", "7", "2.5"]),
    ],
)
def test_jump_times_contain_the_first_and_the_last_jump_that_exist(predicted, observed, numbers):
    result = Comparison(
        predicted=xr.Dataset({"jump_time": ("jump", predicted)}),
        residual=xr.Dataset({"observed_jump_time": ("jump", observed)}),
    )
    found = [each.split(" ")[0].rstrip(".,") for each in jump_times(result).split("t = ")[1:]]
    assert found == numbers
