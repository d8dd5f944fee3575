from __future__ import annotations

import numpy as np

from dynascope.studies.linear_networks.line_alignment.claims import direction_claim


def test_an_alignment_that_changes_in_another_direction_is_refuted():
    alignment, signs = np.array([[0.1, 0.9, 1.0], [0.9, 0.7, 1.0]]), np.array([1, -1, 0])
    assert direction_claim("flow", "", alignment, signs).outcome == "holds"
    for wrong in ([-1, -1, 0], [1, -1, 1], [1, 0, 0]):
        assert direction_claim("flow", "", alignment, np.array(wrong)).outcome == "does not hold"
