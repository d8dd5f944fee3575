from __future__ import annotations

import numpy as np

from dynascope.studies.scaling.scaling_compute.best_sizes import best_sizes


def test_the_best_of_all_sizes_is_between_those_that_were_trained():
    sizes = np.geomspace(10, 1000, 30)
    best, least = best_sizes(sizes, np.exp(np.log(sizes / np.array([[77.7], [200.0]])) ** 2) / 5)
    # Places are two thousandths of an e-fold apart.
    np.testing.assert_allclose(best, [77.7, 200.0], rtol=1e-3)
    np.testing.assert_allclose(least, 0.2, rtol=1e-5)
