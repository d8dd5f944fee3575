from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.scaling_laws import fit

X = np.geomspace(10, 1e4, 25)
LAW = 2 * X**-0.4 + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 3])
def test_a_further_run_is_where_it_is_expected_to_be(runs):
    draw, hits, draws = np.random.default_rng(runs), 0, 40
    ahead = 1e5
    for _ in range(draws):
        losses = LAW * np.exp(0.02 * draw.normal(size=(runs, len(X))))
        low, high = fit(losses, X).loss(ahead)[1:]
        further = (2 * ahead**-0.4 + 0.05) * np.exp(0.02 * draw.normal())
        hits += low <= further <= high
    # 38 are expected, with a standard deviation of 1.4; the scatter of three runs is known better than is supposed.
    assert hits >= 33


def test_the_law_is_told_with_what_was_given():
    for options in ({"floor": 0.05}, {}, {"floor": 0.02}):
        told = fit(LAW if "floor" not in options or options["floor"] == 0.05 else LAW - 0.03, X, **options).loss(X)
        expected = LAW if options.get("floor") != 0.02 else LAW - 0.03
        np.testing.assert_allclose(told.loss, expected, rtol=1e-6)
    lacking = fit(LAW - 0.01, X, missing=0.01)
    np.testing.assert_allclose(lacking.loss(X).loss, LAW - 0.01, rtol=1e-6)


def test_the_farther_ahead_the_less_is_known():
    losses = LAW * np.exp(0.02 * np.random.default_rng(0).normal(size=len(X)))
    told = fit(losses, X).loss([1e2, 1e4, 1e6, 1e8])
    width = np.log(told.high / told.low)
    assert np.all(np.diff(width[1:]) > 0)
    assert np.all((told.low < told.loss) & (told.loss < told.high))


@pytest.mark.parametrize(
    ("argument", "resource", "options"), [("resource", -1.0, {}), ("confidence", 1.0, {"confidence": 1.0})]
)
def test_bad_input_is_refused_by_name(argument, resource, options):
    with pytest.raises(InputError) as refusal:
        fit(LAW, X).loss(resource, **options)
    assert refusal.value.argument == argument
