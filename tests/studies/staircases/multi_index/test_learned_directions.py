from __future__ import annotations

import re

import numpy as np
import xarray as xr

from dynascope.studies.staircases.multi_index.learned_directions import with_overlaps


def test_a_neuron_that_still_points_to_what_was_learned_before_is_counted_for_what_is_left():
    weights = np.array([[0.0, 1.0, 0.0, 9.0], [0.1, 0.9, 0.0, 9.0]])
    predicted = xr.Dataset({"direction": (("jump", "weight"), weights), "learned": ("jump", ["1 neuron", "2 neurons"])})
    found = with_overlaps(predicted, np.eye(3)[:2], [0.5, 2.0])
    assert [re.findall(r"[\d.]+", each) for each in found["learned"].to_numpy()] == [["2", "1"], ["0.5", "2"]]
    np.testing.assert_allclose(found["overlap"][0], [0.0, 1.0])
    assert found["mode"].to_numpy().tolist() == [1, 2]
