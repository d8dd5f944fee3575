from __future__ import annotations

import numpy as np
import pytest

from dynascope.groups import find_group, real_irreducible_representations
from dynascope.studies.staircases.group_composition.paced_encoding import paced_encoding, undisturbed_irreps
from dynascope.theory.groups import composition_staircase
from dynascope.theory.groups.irrep_neurons import irrep_projection, neurons_by_share


@pytest.mark.parametrize("length", [2, 3])
def test_each_irrep_is_learned_so_many_times_as_late_as_the_one_before(length):
    group = find_group("D7")
    irreps = undisturbed_irreps(group, length)
    assert len(irreps) > 1
    assert not any(irrep.trivial for irrep in irreps)
    steps = composition_staircase(group, paced_encoding(group, irreps, length), length, scale=1e-5)
    np.testing.assert_allclose(steps.accelerated_times, 2.5 ** np.arange(len(irreps)), rtol=1e-9)
    assert not any(steps.slow)


def test_neurons_are_dealt_out_by_share():
    group = find_group("D3")
    _, *irreps = real_irreducible_representations(group)
    encoding = paced_encoding(group, irreps, 2)
    rows = neurons_by_share(group, encoding, 2, np.array([3, 5]), seed=1)
    parts = rows[:, : group.order]
    sizes = np.stack([np.linalg.norm(parts @ irrep_projection(group, irrep), axis=1) for irrep in irreps])
    assert np.bincount(sizes.argmax(axis=0)).tolist() == [3, 5]
