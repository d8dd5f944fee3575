from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.groups import dihedral, fourier_transform
from dynascope.groups.encodings import encoding_from_fourier
from dynascope.theory.groups import neurons_near_irreps

GROUP = dihedral(5)
X = encoding_from_fourier(GROUP, {"sign": 1.0, "2d-2": 2.0})


def test_neurons_have_unit_norm_and_are_dealt_out_in_turn():
    rows = neurons_near_irreps(GROUP, X, 3, neurons=7, leakage=0.1)
    assert rows.shape == (7, 40)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    for i, row in enumerate(rows):
        for vector in row.reshape(4, 10):
            trivial, sign, first, second = (np.linalg.norm(each) for each in fourier_transform(GROUP, vector))
            # ‖u‖² = (1/n) Σ d ‖û‖²: a norm of √2 for the plane counts as one.
            ratio = sign / (np.sqrt(2) * second)
            assert ratio == pytest.approx(10 if i % 2 == 0 else 0.1)
            # Irreps that the encoding does not hold get nothing but rounding.
            assert max(trivial, first) < 1e-14


def test_the_draw_is_that_of_the_seed():
    one, again, other = (neurons_near_irreps(GROUP, X, 2, neurons=4, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"neurons": 1}, "the number of irreps is 2"),
        ({"neurons": 0}, "neurons is 0"),
        ({"neurons": 4, "leakage": 1.5}, "leakage is 1.5"),
        ({"neurons": 4, "seed": -1}, "seed is -1"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        neurons_near_irreps(GROUP, X, 2, **arguments)
