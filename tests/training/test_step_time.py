from __future__ import annotations

import numpy as np

from dynascope.networks import MLP
from dynascope.tasks import Labelled
from dynascope.training.step_time import seconds_of_step


def test_the_time_of_a_step_grows_with_what_it_computes():
    draw = np.random.default_rng(0)
    task = Labelled(draw.normal(size=(30, 4)), draw.integers(3, size=30), ("a", "b", "c"))
    small, large = MLP((4, 2, 3)), MLP((4, 3000, 3000, 3))
    # The larger computes ten thousand times as much, so that no pause of the machine turns it round.
    assert 0 < seconds_of_step(task, small, 2) < seconds_of_step(task, large, 30)
