from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.margins.max_margin.classifiers import FACTORS, train_classifier
from dynascope.theory.margins import max_margin, support_drift, support_offset

Z = np.array([[1.0, 0.2], [10.0, -1.0]])
STARTS = {"linear": {"a": [0.1, 0.3]}, "mixed": {"a": [0.1], "u": 0.6, "v": 0.5}}


@pytest.mark.parametrize("name", STARTS)
def test_classifiers_end_where_their_problem_says(name):
    found, problem = train_classifier(name, STARTS[name], Z, np.array([1e3, 1e4])), max_margin(Z, FACTORS[name])
    rest = found.weights - found.path.level[:, None] * problem.weights
    # Of the linear one a single sample is at the margin, and the start decides what that does not see.
    seen = Z if name == "mixed" else Z[:1]
    offset = support_offset(Z, FACTORS[name])
    # What is left falls as 1/ν; parameters are kept within 1e-8 of 1e4.
    np.testing.assert_allclose(rest @ seen.T, np.tile(seen @ offset, (2, 1)), atol=2e-2)
    np.testing.assert_allclose(found.euclidean_margin[-1], problem.euclidean_margin, rtol=1e-3)
    assert found.rate_constant(problem.rate) == pytest.approx(2 * problem.rate**2 * problem.value, rel=1e-3)
    assert found.margin_kept() == 1.0


def test_beside_products_weights_that_no_sample_holds_drift_as_log_nu():
    z, factors = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, -1.0]]), [1, 1, 2]
    found = train_classifier("mixed", {"a": [0.3, -0.2], "u": 0.6, "v": 0.5}, z, np.array([1e3, 1e4]))
    rest = found.weights - found.path.level[:, None] * max_margin(z, factors).weights
    # The next order is 1/ν = 1e-3 over log 10; parameters are kept within 1e-8 of 1e4.
    np.testing.assert_allclose(np.diff(rest, axis=0)[0] / np.log(10), support_drift(z, factors), atol=2e-3)


def test_of_products_those_that_the_largest_margin_does_not_use_fall_behind():
    start = {"u": [0.5, 0.6], "v": [0.4, 0.5]}
    found = train_classifier("products", start, Z, np.array([1e3, 1e4]))
    # Force 0.2 of the largest: ν^0.2 against ν.
    assert np.log10(found.weights[1, 1] / found.weights[0, 1]) == pytest.approx(0.2, abs=0.01)
