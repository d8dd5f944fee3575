from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.margins import max_margin, support_drift

Z, FACTORS = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, -1.0]]), [1, 1, 2]


def test_by_hand():
    """a = (4/5, 2/5), uv = 1/5; n = (1, −2, −1) is orthogonal to both samples, and C = n/10."""
    np.testing.assert_allclose(max_margin(Z, FACTORS).weights, [0.8, 0.4, 0.2], atol=1e-12)
    np.testing.assert_allclose(support_drift(Z, FACTORS), [0.1, -0.2, -0.1], atol=1e-12)
    # Of the other sign of the product the force is the other one.
    np.testing.assert_allclose(support_drift(Z * [1, 1, -1], FACTORS), [0.1, -0.2, 0.1], atol=1e-12)


def test_turning_the_single_weights_turns_it_and_margins_stay():
    draw = np.random.default_rng(0)
    turn = np.linalg.qr(draw.normal(size=(2, 2)))[0]
    turned = np.column_stack([Z[:, :2] @ turn.T, Z[:, 2]])
    found, before = support_drift(turned, FACTORS), support_drift(Z, FACTORS)
    np.testing.assert_allclose(found, [*(turn @ before[:2]), before[2]], atol=1e-12)
    np.testing.assert_allclose(turned @ found, 0, atol=1e-12)


def test_there_is_none_where_nothing_is_free_or_all_are_single_weights_or_products_are_long():
    assert not support_drift([[1.0, 0.2], [10.0, -1.0]], [1, 2]).any()
    assert not support_drift([[1.0, 0.5]]).any()
    assert not support_drift(Z, [1, 1, 3]).any()


@pytest.mark.filterwarnings("ignore:max_margin")
@pytest.mark.parametrize(
    ("data", "factors", "argument"),
    [
        ([[1.0, 0.5]], 2, "factors"),
        ([[1.0, 1.0]], [1, 2], "factors"),
        ([[1.0, 0.0], [-1.0, 0.0]], 1, "data"),
        ([[1.0, 1.0, 0.5], [1.0, -1.0, 0.5]], [1, 2, 2], "factors"),
        ([[1.0, 0.0, 1.0], [1.0, 0.0, -1.0]], [1, 1, 2], "data"),
    ],
)
def test_bad_input_is_refused_by_name(data, factors, argument):
    with pytest.raises(InputError) as caught:
        support_drift(data, factors)
    assert caught.value.argument == argument
