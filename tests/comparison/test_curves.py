from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.comparison.curves import compare_curves
from dynascope.errors import InputError
from dynascope.results import make_record


def curve(time, **variables):
    """Variables over time, or over (mode, time) where they have two axes."""
    named = {
        name: (["time"] if np.ndim(values) == 1 else ["mode", "time"], values) for name, values in variables.items()
    }
    modes = {"mode": [1, 2]} if any(np.ndim(values) == 2 for values in variables.values()) else {}
    return make_record(named, {**modes, "time": time})


TIME = np.linspace(0, 4, 9)


def test_errors_are_relative_norms_of_the_residual():
    expected = np.exp(-TIME)
    residual, errors = compare_curves(curve(TIME, loss=expected + 0.1 * TIME), curve(TIME, loss=expected))
    np.testing.assert_allclose(residual["loss_residual"], 0.1 * TIME)
    assert errors["loss"] == pytest.approx(0.1 * np.linalg.norm(TIME) / np.linalg.norm(expected))
    assert errors["loss_maximum"] == pytest.approx(0.4)


@given(st.floats(-0.5, 0.5), st.floats(0.1, 10))
def test_a_constant_factor_is_the_error(share, size):
    # Whatever the units of the curve.
    expected = size * np.exp(-TIME)
    _, errors = compare_curves(curve(TIME, loss=(1 + share) * expected), curve(TIME, loss=expected))
    assert errors["loss"] == pytest.approx(abs(share))
    assert errors["loss_maximum"] == pytest.approx(abs(share))


def test_other_grids_are_compared_on_the_times_they_share():
    observed, predicted = np.array([0.5, 1.0, 2.2, 3.7, 9.0]), np.linspace(1, 4, 7)
    residual, errors = compare_curves(
        curve(observed, loss=2 * observed), curve(predicted, loss=2 * predicted, other=predicted)
    )
    # A straight line survives linear interpolation.
    np.testing.assert_allclose(residual["time"], [1.0, 2.2, 3.7])
    np.testing.assert_allclose(residual["loss_residual"], 0, atol=1e-12)
    assert set(errors) == {"loss", "loss_maximum"}
    assert errors["loss"] < 1e-12


def test_every_shared_variable_is_compared_in_any_order_of_dimensions():
    strength = np.stack([TIME, 2 * TIME])
    observed = curve(TIME, loss=TIME, mode_strength=strength)
    predicted = curve(TIME, loss=TIME, mode_strength=1.1 * strength).transpose("time", "mode")
    residual, errors = compare_curves(observed, predicted)
    assert errors["loss"] == 0
    assert errors["mode_strength"] == pytest.approx(0.1 / 1.1)
    assert residual["mode_strength_residual"].dims == ("mode", "time")
    assert residual["mode"].to_numpy().tolist() == [1, 2]


def test_vanishing_prediction_is_met_only_by_zero():
    zero = curve(TIME, loss=np.zeros(9))
    assert compare_curves(zero, zero)[1] == {"loss": 0, "loss_maximum": 0}
    assert compare_curves(curve(TIME, loss=np.full(9, 1e-3)), zero)[1] == {"loss": np.inf, "loss_maximum": np.inf}


@pytest.mark.parametrize("missing", ["observed", "predicted"])
def test_unknown_values_are_no_agreement(missing):
    known, unknown = np.ones(9), np.where(TIME == 2, np.nan, 1.0)
    pair = (unknown, known) if missing == "observed" else (known, unknown)
    _, errors = compare_curves(*(curve(TIME, accuracy=values) for values in pair))
    assert errors == {"accuracy": np.inf, "accuracy_maximum": np.inf}


def refused(observed, predicted):
    with pytest.raises(InputError) as caught:
        compare_curves(observed, predicted)
    return caught.value


def test_records_without_a_common_variable_are_refused():
    error = refused(curve(TIME, loss=TIME), curve(TIME, accuracy=TIME))
    assert error.argument == "predicted"
    assert "predict at least one of loss" in str(error)
    # A variable that does not run along time in both is not common.
    final = make_record({"loss": ([], 1.0), "accuracy": (["time"], TIME)}, {"time": TIME})
    assert refused(final, curve(TIME, loss=TIME)).argument == "predicted"


def test_spans_without_overlap_are_refused():
    error = refused(curve(TIME, loss=TIME), curve(TIME + 10, loss=TIME))
    assert error.argument == "observed"
    assert "0 to 4" in str(error)
    assert "10 to 14" in str(error)


def test_different_members_are_refused():
    loss = np.ones(9)
    ensemble = make_record({"loss": (["seed", "time"], [loss, loss])}, {"seed": [0, 1], "time": TIME})
    three = make_record({"loss": (["seed", "time"], [loss] * 3)}, {"seed": [0, 1, 2], "time": TIME})
    for predicted in (curve(TIME, loss=loss), three):
        error = refused(ensemble, predicted)
        assert error.argument == "predicted"
        assert "give both records the same members" in str(error)
    assert compare_curves(ensemble, ensemble)[1]["loss"] == 0


def over_lengths(lengths, values):
    return make_record({"width": (["length"], values)}, {"length": lengths})


def test_other_dimensions_are_compared_label_by_label():
    observed, predicted = over_lengths([2, 3], [1.0, 2.2]), over_lengths([2, 3], [1.0, 2.0])
    residual, errors = compare_curves(observed, predicted, ("length",))
    np.testing.assert_allclose(residual["width_residual"], [0, 0.2])
    assert errors["width_maximum"] == pytest.approx(0.1)
    with pytest.raises(InputError, match="labels"):
        compare_curves(observed, over_lengths([2, 4], [1.0, 2.0]), ("length",))


def test_a_number_is_compared_where_its_tolerance_is_given():
    expected = curve(TIME, loss=TIME).assign(slope=2.0, ratio=1.0)
    observed = expected.assign(slope=2.2, ratio=3.0)
    residual, errors = compare_curves(observed, expected.assign_attrs(slope_tolerance=0.2))
    assert float(residual["slope_residual"]) == pytest.approx(0.2)
    assert errors["slope"] == pytest.approx(0.1)
    assert "ratio" not in errors


def test_several_dimensions_may_be_named():
    both = [curve(TIME, loss=each * np.exp(-TIME)).merge(over_lengths([2, 3], [each, 2.0])) for each in (1.0, 1.1)]
    _, errors = compare_curves(*both, ("time", "length"))
    assert errors["loss"] == pytest.approx(0.1 / 1.1)
    assert errors["width_maximum"] == pytest.approx(0.05)
    assert set(compare_curves(*both)[1]) == {"loss", "loss_maximum"}
