from __future__ import annotations

import numpy as np
import pytest

from dynascope.probes.kernel import estimate_cost
from dynascope.probes.kernel.cost import ESTIMATES, EXACT

networks = pytest.importorskip("pytorch_networks", reason="PyTorch is an optional extra")
torch, nn = networks.torch, networks.nn

N, WEIGHTS = 32, 64 * 128 + 128 * 128 + 128 * 10


def test_the_costs_are_the_formulas_of_the_table():
    layers = [nn.Linear(64, 128, bias=False), nn.ReLU(), nn.Linear(128, 128, bias=False), nn.ReLU()]
    module = nn.Sequential(*layers, nn.Linear(128, 10, bias=False))
    costs = estimate_cost(module, None, torch.ones(N, 64))
    assert set(costs) == {*EXACT, *ESTIMATES}
    # The passes and the products, which are all that is counted.
    contraction = 2 * N**2 * 100 * WEIGHTS + N * 2 * 21 * WEIGHTS
    structured = 2 * N**2 * (64 + 128 + 128 + 100 * (128 + 128 + 10)) + N * 2 * 11 * WEIGHTS
    np.testing.assert_allclose(costs["jacobian"].flops, contraction, rtol=1e-12)
    np.testing.assert_allclose(costs["structured"].flops, structured, rtol=1e-12)
    assert costs["layerwise"].bytes < costs["jacobian"].bytes
    smaller = estimate_cost(module, None, torch.ones(N, 64), batch_size=8)
    assert smaller["structured"].bytes < costs["structured"].bytes


def test_what_has_no_products_counts_its_parameters():
    costs = estimate_cost(lambda w, x: x * w, torch.ones(5), torch.ones(3, 5))
    assert costs["sketch"].flops > 0
