from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.deep_modes import initialisation_exponents


def test_initial_exponents_are_those_of_gaussian_products():
    draw = np.random.default_rng(0)
    for depth, gamma in ((2, 0.7), (3, 1.4)):
        exponents = initialisation_exponents(depth, gamma)
        found = []
        for width in (10, 1000):
            sizes = [1, *[width] * (depth - 1), 1]
            hidden = np.ones((4000, 1, 1))
            for columns in sizes[1:]:
                # A sum of Gaussians is Gaussian, given the vector before.
                norm = np.linalg.norm(hidden, axis=2, keepdims=True)
                hidden = norm * width ** (-gamma / 2) * draw.normal(size=(4000, 1, columns))
            found.append(np.mean(hidden**2))
        # Variances of 4000 draws of products, to a few percent of a factor of a hundred.
        slope = np.log(found[1] / found[0]) / np.log(100)
        assert slope == pytest.approx(float(exponents.output_variance), abs=0.04)


def test_regimes_meet_where_they_should():
    exponents = initialisation_exponents(3, [0.6, 1 - 1 / 3, 0.9, 1.0, 1.1])
    assert exponents.regime.tolist() == ["exploding", "lazy", "lazy", "critical", "saddle-to-saddle"]
    np.testing.assert_allclose(exponents.output_variance[[1, 3]], [0, -1], atol=1e-15)
    np.testing.assert_allclose(exponents.kernel, [0.8, 2 / 3, 0.2, 0, -0.2], atol=1e-15)
    np.testing.assert_allclose(exponents.parameter_motion, -exponents.kernel / 2)
    np.testing.assert_allclose(exponents.saddle_distance, [0.2, 1 / 6, 0.05, 0, -0.05], atol=1e-15)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("depth", lambda: initialisation_exponents(1, 1.0)),
        ("gamma", lambda: initialisation_exponents(2, np.nan)),
    ],
)
def test_bad_input_is_refused_by_name(argument, call):
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.argument == argument
