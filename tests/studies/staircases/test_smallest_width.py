from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.studies.staircases.smallest_width import smallest_width
from dynascope.tasks import Task

TASK = Task(np.eye(2), np.eye(2))


@pytest.mark.parametrize(("needed", "reported"), [(5, 8), (8, 8), (33, 0)])
def test_the_width_is_doubled_until_the_best_network_reaches_the_target(monkeypatch, needed, reported):
    tried = []

    def descend(task, networks, method):
        assert (method.save, method.learning_rate) == ([0, method.steps], 0.1)
        tried.append(networks[0])
        return xr.Dataset({"loss": (("seed", "step"), [[100.0, 0.5], [0.001, 0.01 if tried[-1] >= needed else 0.02]])})

    monkeypatch.setattr("dynascope.studies.staircases.smallest_width.descend", descend)
    sizes = {"smallest": 2, "largest": 32, "steps": 7, "learning_rate": 0.1}
    assert smallest_width(TASK, lambda width: [width, width], 0.015, **sizes) == (reported, 0.01 if reported else 0.02)
    assert tried == [2, 4, 8, 16, 32][: 3 if reported else 5]
