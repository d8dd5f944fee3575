import numpy as np
import pytest
import xarray as xr

from dynascope.comparison import compare
from dynascope.results import make_record
from dynascope.studies.features.chance import within_chance


def verdict(truth, seed=0, draws=50, spread=0.3):
    draw, theory = np.random.default_rng(seed), np.array([3.0, 2.0, 1.0])
    runs = truth * theory * (1 + spread * draw.normal(size=(draws, 3)))
    errors = runs.std(axis=0, ddof=1) / draws**0.5
    names = {f"loss{end}_tolerance": 0.01 for end in ("", "_maximum")}
    predicted = make_record({"loss": (["samples"], theory)}, {"samples": [1, 2, 3]}, attributes=names)
    observed = make_record({"loss": (["samples"], runs.mean(axis=0))}, {"samples": [1, 2, 3]})
    return compare(observed, within_chance(predicted, {"loss": errors}), along="samples").verdict.outcome


def test_a_wrong_theory_disagrees_and_sampling_error_does_not():
    told = [verdict(1.0, seed) for seed in range(100)]
    # Three standard deviations of the largest of three numbers.
    assert told.count("agree") >= 97
    assert {verdict(1.4, seed) for seed in range(20)} == {"disagree"}


def test_a_larger_given_tolerance_is_kept():
    predicted = xr.Dataset({"loss": ("samples", [1.0, 1.0])}, attrs={"loss_tolerance": 0.2})
    found = within_chance(predicted, {"loss": [0.01, 0.01], "other": [1.0]}, beside=0.01).attrs
    assert found["loss_tolerance"] == 0.2
    assert found["loss_maximum_tolerance"] == pytest.approx(0.04)
