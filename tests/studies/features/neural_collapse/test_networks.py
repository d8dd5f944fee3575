from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.features.neural_collapse.networks import CollapsingNetworks
from dynascope.studies.features.relabelled_digits import LABELS


def networks(**fields):
    usual = {"networks": ("mlp",), "labels": LABELS, "samples": 80, "width": 12, "learning_rate": 5e-3}
    return CollapsingNetworks(
        **{**usual, "weight_decay": 3e-3, "steps": 20, "batch_size": 20, "starts": 2, "seed": 0, **fields}
    )


@pytest.mark.slow
def test_networks_are_measured_for_every_kind_of_labels():
    study = networks(networks=("mlp",), samples=80, width=12, steps=20, batch_size=20)
    measured = study.measure()
    for name in ("loss", "nc1", "nc2_angle", "nc2_norm", "nc3", "nc4", "kappa_cka", "effective_dimension"):
        dimensions, values = measured[f"network_{name}"]
        assert dimensions == ("architecture", "run", "seed", "step")
        assert values.shape == (1, 4, 2, len(study.recorded))
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    # The initial features do not depend on the labels.
    first = measured["network_effective_dimension"][1][0, :, 0, 0]
    np.testing.assert_allclose(first[:3], first[0], rtol=1e-12)
    accuracy = measured["network_accuracy"][1][0, 0, 0]
    assert accuracy[-1] > accuracy[0]
