from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.symmetry import Charge, Part, charges

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
pytest.importorskip("dynascope.torch")

NORM = Charge("scale", (Part("['weight']", np.array([[0, 0]]), 1.0),), 1)


def test_the_charge_of_a_module_is_that_of_its_weights():
    module = torch.nn.Linear(2, 1, bias=False)
    assert charges(module, [NORM]) == pytest.approx(float(module.weight.detach().square().sum()), rel=1e-6)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("swapped", [lambda module: ([NORM], module), lambda module: (module, module)])
def test_arguments_in_the_wrong_order_are_named(swapped):
    module = torch.nn.Sequential(torch.nn.Linear(2, 1))
    with pytest.raises(InputError, match=r"charges\(params, symmetries\)") as caught:
        charges(*swapped(module))
    assert caught.value.argument == "symmetries"
