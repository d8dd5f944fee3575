from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.plot.lines import curve_names, find_lines
from dynascope.results import Chart, from_tree, make_record


def stairs(times, losses, **attributes):
    jumps = np.arange(1, len(times) + 1)
    return make_record(
        {
            "jump_time": (["jump"], np.array(times, float)),
            "loss_before": (["jump"], np.array(losses[:-1], float)),
            "loss_after": (["jump"], np.array(losses[1:], float)),
        },
        {"jump": jumps},
        attributes={"theory": "an example", **attributes},
    )


def curve(**variables):
    dimensions = {"seed": [0, 1, 2], "mode": [1, 2], "time": np.linspace(0, 10, 11)}
    used = {name for names, _ in variables.values() for name in names}
    return make_record(variables, {name: dimensions[name] for name in used})


def tree(**sides):
    return xr.DataTree.from_dict(dict(sides))


def curves(tree, variable):
    return find_lines(from_tree(tree), Chart(variable, over="")).lines


def staircase(tree):
    return find_lines(from_tree(tree), Chart("loss", staircase=True)).lines


def test_shared_curves_are_named_first_and_text_and_jumps_are_not_curves():
    observed = curve(
        accuracy=(["time"], np.ones(11)),
        loss=(["time"], np.ones(11)),
        mode_strength=(["time", "mode"], np.ones((11, 2))),
    )
    predicted = stairs([1.0], [1.0, 0.0]).merge(curve(mode_strength=(["time", "mode"], np.ones((11, 2)))))
    assert curve_names(from_tree(tree(observed=observed, predicted=predicted))) == [
        "mode_strength",
        "accuracy",
        "loss",
    ]


def test_the_staircase_is_level_between_upright_jumps():
    (line,) = staircase(stairs([2.0, 4.0], [1.0, 0.5, 0.25]))
    np.testing.assert_allclose(line.x, [0, 0.2, 2, 2, 4, 4, 4.6])
    np.testing.assert_allclose(line.y, [1, 1, 1, 0.5, 0.5, 0.25, 0.25])


def test_a_jump_that_never_comes_is_not_drawn():
    (line,) = staircase(stairs([2.0, np.inf, np.nan], [1.0, 0.5, 0.25, 0.0]))
    assert line.y.min() == 0.5
    assert np.isfinite(line.x).all()


def test_a_staircase_without_jumps_stays_at_the_initial_loss():
    (line,) = staircase(stairs([], [0.0], initial_loss=0.7))
    np.testing.assert_array_equal(line.y, 0.7)


@pytest.mark.parametrize(("last_jump", "end"), [(5.0, 10.0), (13.0, 14.95), (1e6, 20.0)])
def test_the_staircase_shows_at_most_as_much_time_again_as_was_observed(last_jump, end):
    both = tree(observed=curve(loss=(["time"], np.ones(11))), predicted=stairs([1.0, last_jump], [1.0, 0.5, 0.25]))
    (line,) = [line for line in staircase(both) if line.side == "predicted"]
    assert line.x[-1] == pytest.approx(end)
    assert line.x.max() == line.x[-1]


@settings(max_examples=12, deadline=None)
@given(gaps=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20))
def test_time_never_runs_backwards_on_a_staircase(gaps):
    times = np.cumsum(gaps)
    (line,) = staircase(stairs(times, np.linspace(1, 0, len(times) + 1)))
    assert np.all(np.diff(line.x) >= 0)
    assert np.all(np.diff(line.y) <= 0)
    assert set(times) <= set(line.x)


def test_the_seeds_of_a_mode_share_its_colour_on_both_sides():
    values = np.arange(66.0).reshape(3, 11, 2)
    both = tree(
        observed=curve(mode_strength=(["seed", "time", "mode"], values)),
        predicted=curve(mode_strength=(["mode", "time"], values[0].T)).assign_attrs(theory="an example"),
    )
    lines = curves(both, "mode_strength")
    assert [(line.side, line.label) for line in lines].count(("observed", "mode 1")) == 3
    assert [(line.side, line.label) for line in lines].count(("predicted", "mode 1")) == 1
    assert len({line.colour for line in lines if line.label == "mode 1"}) == 1
    assert len({line.colour for line in lines}) == 2
    assert all(line.thin == (line.side == "observed") for line in lines)
    np.testing.assert_array_equal(lines[1].y, values[0, :, 1])


def test_many_members_still_have_colours_of_their_own():
    modes = np.arange(40)
    record = make_record({"mode_strength": (["mode", "time"], np.ones((40, 2)))}, {"mode": modes, "time": [0.0, 1.0]})
    assert len({line.colour for line in curves(record, "mode_strength")}) == 40


def test_two_sides_of_one_curve_have_two_colours():
    both = tree(observed=curve(loss=(["time"], np.ones(11))), predicted=curve(loss=(["time"], np.ones(11))))
    assert len({line.colour for line in curves(both, "loss")}) == 2


def test_a_sweep_over_scales_is_a_curve():
    record = make_record({"jump_time_error": (["scale"], [0.1, 0.2])}, {"scale": [1e-4, 1e-2]})
    assert find_lines(from_tree(record), Chart("jump_time_error", over="")).axis == "scale"


@pytest.mark.parametrize(
    "ask",
    [
        lambda record: curves(record, "accuracy"),
        lambda record: staircase(record.drop_vars("loss")),
    ],
)
def test_asking_for_what_is_not_there_is_bad_input(ask):
    record = curve(loss=(["time"], np.ones(11)), mode_strength=(["mode", "time"], np.ones((2, 11))))
    with pytest.raises(InputError) as caught:
        ask(record)
    assert caught.value.remedy


def test_a_plane_pairs_the_values_of_the_same_member():
    record = make_record(
        {
            "a": (["imbalance", "time"], [[0.0, 1.0], [2.0, 3.0]]),
            "b": (["time", "imbalance"], [[5.0, 7.0], [6.0, 8.0]]),
        },
        {"imbalance": [-1.0, 1.0], "time": [0.0, 1.0]},
    )
    lines = find_lines(from_tree(record), Chart("b", over="a")).lines
    assert [(line.label, line.x.tolist(), line.y.tolist()) for line in lines] == [
        ("imbalance −1", [0.0, 1.0], [5.0, 6.0]),
        ("imbalance 1", [2.0, 3.0], [7.0, 8.0]),
    ]


def test_variables_over_other_dimensions_make_no_plane():
    record = make_record(
        {"a": (["time"], [0.0, 1.0]), "b": (["mode", "time"], [[5.0, 7.0]])}, {"mode": [1], "time": [0.0, 1.0]}
    )
    with pytest.raises(InputError, match="same dimensions"):
        find_lines(from_tree(record), Chart("b", over="a"))


def test_a_member_that_has_a_name_is_called_by_it_alone():
    record = make_record(
        {"loss": (["start", "exponent", "time"], np.ones((1, 1, 2)))},
        {"start": ["small"], "exponent": [0.5], "time": [0.0, 1.0]},
    )
    assert [line.label for line in curves(record, "loss")] == ["small, exponent 0.5"]
