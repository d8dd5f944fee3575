from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import xarray as xr

from dynascope.errors import InputError
from dynascope.plot.drawing import Drawing, describe_chart, undeclared
from dynascope.plot.lines import SIDES
from dynascope.results import Chart, describe, from_tree, make_record

TIME = np.linspace(0.0, 1.0, 5)


def side(shift: float = 0.0) -> xr.Dataset:
    strength = np.stack([TIME, TIME**2]) + shift
    return make_record(
        {
            "strength": (["mode", "time"], strength),
            "low": (["mode", "time"], strength - 0.1),
            "high": (["mode", "time"], strength + 0.2),
            "spread": (["mode", "time"], np.full((2, 5), 0.3)),
            "accuracy": (["time"], TIME + shift),
            "test_accuracy": (["time"], TIME / 2 + shift),
            "exponent_found": (["start"], [1.0 + shift, 2.0]),
        },
        {"time": TIME, "mode": [1, 2], "start": ["small", "large"]},
        names={"accuracy": ("training", "1")},
    )


@pytest.fixture
def tree() -> xr.DataTree:
    return xr.DataTree.from_dict({"observed": side(0.5), "predicted": side()})


def labels(drawing: Drawing) -> list[str]:
    return list(dict.fromkeys(line.label for line in drawing.panels[0].lines))


def test_both_sides_of_a_member_share_a_colour(tree):
    drawing = describe_chart(tree, Chart("strength"))
    assert [(line.side, line.label) for line in drawing.panels[0].lines] == [
        ("observed", "mode 1"),
        ("observed", "mode 2"),
        ("predicted", "mode 1"),
        ("predicted", "mode 2"),
    ]
    colours = [line.colour for line in drawing.panels[0].lines]
    assert colours[:2] == colours[2:]
    assert colours[0] != colours[1]
    assert drawing.panels[0].y.label == describe("strength")[0]


def test_a_line_alone_has_the_colour_of_its_side(tree):
    drawing = describe_chart(tree, Chart("accuracy"))
    assert [line.colour for line in drawing.panels[0].lines] == [SIDES["observed"], SIDES["predicted"]]
    assert drawing.panels[0].y.label == "training"


def test_several_variables_are_told_apart_by_their_words(tree):
    assert labels(describe_chart(tree, Chart(("accuracy", "test_accuracy")))) == [
        "training",
        describe("test_accuracy")[0],
    ]
    assert labels(describe_chart(tree, Chart(("accuracy", "test_accuracy"), words=("a", "b")))) == ["a", "b"]
    assert labels(describe_chart(tree, Chart(("accuracy", "strength")))) == [
        "training",
        f"{describe('strength')[0]}, mode 1",
        f"{describe('strength')[0]}, mode 2",
    ]


def test_what_theory_took_from_training_is_drawn_as_observed(tree):
    theory = xr.DataTree.from_dict({"predicted": tree["predicted"].to_dataset()})
    chart = Chart(("accuracy", "test_accuracy"), trained=("accuracy",))
    assert [line.side for line in describe_chart(theory, chart).panels[0].lines] == ["observed", "predicted"]


def test_only_the_members_that_are_named_are_drawn(tree):
    drawing = describe_chart(tree, Chart("strength", members={"mode": (2, 1)}))
    assert labels(drawing) == ["mode 2", "mode 1"]


def test_of_one_member_the_lines_do_not_say_which(tree):
    drawing = describe_chart(tree, Chart("strength", members={"mode": (2,)}))
    assert labels(drawing) == [""]
    np.testing.assert_array_equal(drawing.panels[0].lines[1].y, TIME**2)


@pytest.mark.parametrize(
    ("places", "expected"), [((-1, 0), ["mode 1", "mode 2"]), ((0, 1, 7), ["mode 1", "mode 2"]), ((-1,), [""])]
)
def test_members_are_chosen_by_their_places(tree, places, expected):
    drawing = describe_chart(tree, Chart("strength", places={"mode": places}))
    assert labels(drawing) == expected
    np.testing.assert_array_equal(drawing.panels[0].lines[-1].y, TIME**2)


def test_a_path_of_one_member_has_its_own_interval_and_place(tree):
    chart = Chart("strength", over="spread", places={"mode": (1,)}, interval=("low", "high"))
    observed, _ = describe_chart(tree, chart).panels[0].lines
    np.testing.assert_array_equal(observed.x, np.full(5, 0.3))
    np.testing.assert_array_equal(observed.low, TIME**2 + 0.5 - 0.1)


def test_a_dimension_is_called_by_its_symbol(tree):
    assert labels(describe_chart(tree, Chart("strength", symbols={"mode": "k"}))) == ["k = 1", "k = 2"]


def test_members_without_a_symbol_are_not_told_apart(tree):
    drawing = describe_chart(tree, Chart("strength", symbols={"mode": ""}))
    assert labels(drawing) == [""]
    assert all(line.thin for line in drawing.panels[0].lines)


def test_what_is_too_small_is_left_out(tree):
    drawing = describe_chart(tree, Chart("strength", decades=0.5, interval=("low", "high")))
    least = 1.5 / 10**0.5
    drawn = drawing.panels[0].lines[0].y
    assert drawn[np.isfinite(drawn)].min() >= least
    np.testing.assert_array_equal(np.isnan(drawn), least > TIME + 0.5)
    assert drawing.panels[0].lines[0].low.min() == least


def test_a_staircase_leaves_out_what_is_too_small():
    record = make_record({"loss": (["time"], [1.0, 0.5, 1e-3, 1e-9, 0.0])}, {"time": TIME})
    (line,) = describe_chart(record, Chart("loss", staircase=True, log="y", decades=4)).panels[0].lines
    np.testing.assert_array_equal(line.y, [1.0, 0.5, 1e-3, np.nan, np.nan])


def test_an_interval_belongs_to_its_member(tree):
    _, second, *_ = describe_chart(tree, Chart("strength", interval=("low", "high"))).panels[0].lines
    np.testing.assert_array_equal(second.low, TIME**2 + 0.5 - 0.1)
    np.testing.assert_array_equal(second.high, TIME**2 + 0.5 + 0.2)
    _, second, *_ = describe_chart(tree, Chart("strength", error="spread")).panels[0].lines
    np.testing.assert_array_equal(second.high, second.y + 0.3)


def test_an_interval_of_one_side_is_drawn_on_that_side(tree):
    tree["predicted"] = xr.DataTree(tree["predicted"].to_dataset().drop_vars("low"))
    observed, predicted = (
        describe_chart(tree, Chart("strength", members={"mode": (1,)}, interval=("low", "high"))).panels[0].lines
    )
    assert observed.low is not None
    assert predicted.low is None


def test_the_residual_is_observed_less_predicted(tree):
    drawing = describe_chart(tree, Chart("strength", residual=True))
    for line in drawing.panels[1].lines:
        # Differences of numbers of order one.
        np.testing.assert_allclose(line.y, 0.5, rtol=1e-15)


def test_a_variable_over_another_is_a_path(tree):
    drawing = describe_chart(tree, Chart("test_accuracy", over="accuracy"))
    np.testing.assert_array_equal(drawing.panels[0].lines[0].x, TIME + 0.5)
    assert (drawing.x.label, drawing.panels[0].y.label) == ("training", describe("test_accuracy")[0])


def test_labels_that_are_text_are_ticks(tree):
    drawing = describe_chart(tree, Chart("exponent_found", over="start"))
    assert drawing.x.ticks == {0: "small", 1: "large"}
    assert [line.style for line in drawing.panels[0].lines] == ["points", "bars"]
    np.testing.assert_array_equal(drawing.panels[0].lines[0].x, [0, 1])


def test_an_axis_that_counts_a_few_things_has_a_tick_for_each(tree):
    tree["observed"] = xr.DataTree(tree["observed"].to_dataset().assign(last=("mode", [1.0, 2.0])))
    assert describe_chart(tree, Chart("last", over="mode")).x.ticks == {1: "1", 2: "2"}
    assert describe_chart(tree, Chart("last", over="mode", log="x")).x.ticks == {}


def test_own_words_stand_along_the_axes(tree):
    drawing = describe_chart(tree, Chart("accuracy", x_label="t", y_label="share"))
    assert (drawing.x.label, drawing.panels[0].y.label) == ("t", "share")


def test_a_side_that_has_a_variable_over_something_else_is_left_out(tree):
    jumps = make_record({"accuracy": (["jump"], [0.5])}, {"jump": [1]}, attributes={"theory": "an example"})
    tree["predicted"] = xr.DataTree(jumps)
    assert [line.side for line in describe_chart(tree, Chart("accuracy")).panels[0].lines] == ["observed"]


@pytest.mark.parametrize(
    ("chart", "argument", "problem"),
    [
        (Chart("stength"), "variables", "one of the figures contains 'stength', .* choose from strength"),
        (Chart("strength", interval=("low", "hihg")), "variables", "one of the figures contains 'hihg'"),
        (Chart("strength", error="sprad"), "variables", "one of the figures contains 'sprad'"),
        (Chart("strength", over="step"), "over", "over 'step', but 'strength' has dimensions mode, time"),
        (Chart("strength", over="accuracy"), "over", "draws 'strength' over 'accuracy'"),
        (Chart("strength", members={"mode": (3,)}), "members", "mode 3, but 'strength' has no such .* from 1, 2"),
    ],
)
def test_what_the_tree_lacks_is_bad_input_that_names_it(tree, chart, argument, problem):
    with pytest.raises(InputError, match=problem) as caught:
        describe_chart(tree, chart)
    assert caught.value.argument == argument


def ends(*heights: float, log: Literal["", "y"] = "") -> list:
    """The labels at the ends of lines that rise from zero to these heights."""
    modes = np.arange(len(heights))
    record = make_record(
        {"strength": (["mode", "time"], np.outer(heights, [0.0, 1.0]))}, {"mode": modes, "time": [0.0, 1.0]}
    )
    return list(describe_chart(record, Chart("strength", log=log)).panels[0].ends)


def test_labels_at_the_ends_of_lines_keep_apart_and_in_order():
    placed = ends(1.0, 0.999, 0.998, 0.5, 0.0, 0.001)
    assert [end.text for end in placed] == [f"mode {i}" for i in (4, 5, 3, 2, 1, 0)]
    # Of axes of height one; less than the rounding of a sum of a few such numbers.
    assert np.diff([end.y for end in placed]).min() > 0.055 - 1e-12
    assert placed[2].y == 0.5


def test_more_labels_than_have_room_are_thinned_and_keep_both_ends():
    placed = [end.text for end in ends(*np.linspace(0, 1, 60))]
    assert len(placed) == 18
    assert (placed[0], placed[-1]) == ("mode 0", "mode 59")


def test_a_line_without_a_drawn_value_has_no_label():
    assert ends(*[np.nan] * 5) == []
    assert [end.text for end in ends(-1.0, -1.0, -1.0, -1.0, 1.0, log="y")] == ["mode 4"]


def test_lines_that_end_upon_each_other_are_labelled_in_their_order_from_the_top():
    placed = ends(1.0, 1.0 + 1e-9, 1.0 - 1e-9, 0.0, 0.5)
    assert [end.text for end in placed] == [f"mode {i}" for i in (3, 4, 2, 1, 0)]


def automatic(x, y, axis: str) -> Drawing:
    x = np.asarray(x, float)
    record = make_record({"loss": ([axis], np.broadcast_to(y, x.shape))}, {axis: x})
    return describe_chart(record, Chart("loss", over=""), automatic=True)


@pytest.mark.parametrize(("axis", "expected"), [("samples", True), ("scale", True), ("step", False)])
def test_some_axes_are_logarithmic_by_their_kind(axis, expected):
    assert automatic([1, 2, 3, 4], 1.0, axis).x.log == expected


def test_an_axis_whose_points_keep_a_ratio_is_logarithmic_even_after_a_zero():
    assert automatic(np.append(0.0, np.geomspace(1e-3, 1e3, 7)), 1.0, "time").x.log
    # Less than two decades need no logarithm.
    assert not automatic(np.geomspace(1, 99, 7), 1.0, "time").x.log


def test_only_positive_values_that_are_straight_between_logarithmic_axes_are_a_power_law():
    x = np.geomspace(1, 1e6, 9)
    curves = {"power": x**-0.5, "bent": 1 / (1 + x / 1e5), "vanishing": np.append(1 / x[:-1], 0.0)}
    logarithmic = [name for name, y in curves.items() if automatic(x, y, "time").panels[0].y.log]
    assert logarithmic == ["power"]


def test_ticks_count_modes_and_no_times():
    def ticks(axis, x):
        return list(automatic(x, 1.0, axis).x.ticks.values())

    assert ticks("mode", [1.0, 2.0, 3.0]) == ["1", "2", "3"]
    assert ticks("time", [1.0, 2.0, 3.0]) == []
    assert ticks("mode", [1.0, 2.5]) == []
    assert ticks("mode", np.arange(40.0)) == []


@pytest.mark.parametrize(
    ("times", "crowded"),
    [([30.0, 400.0, 600.0, 5e4], True), ([3.0, 100.0], True), ([30.0, 40.0, 50.0], False), ([1.0], False)],
)
def test_a_late_jump_asks_for_a_logarithmic_axis_where_it_crowds_the_others(times, crowded):
    levels = np.linspace(1.0, 0.1, len(times) + 1)
    record = make_record(
        {
            "jump_time": (["jump"], times),
            "loss_before": (["jump"], levels[:-1]),
            "loss_after": (["jump"], levels[1:]),
        },
        {"jump": np.arange(1, len(times) + 1)},
    )
    (drawing,) = undeclared(from_tree(record))
    panel = drawing.panels[0]
    assert drawing.x.log == crowded
    # No decades stand empty before the first jump.
    assert panel.lines[0].x.min() == (pytest.approx(times[0] / 10) if crowded else 0.0)
    assert [(jump.x, jump.before) for jump in panel.jumps] == list(zip(times, levels[:-1], strict=True))


def test_a_joined_line_connects_its_points_across_missing_values_and_marks_them():
    values = {"kernel": (["step"], [0.0, np.nan, 2.0, np.nan]), "loss": (["step"], [np.nan, 3.0, 2.0, 1.0])}
    record = make_record(values, {"step": [0, 1, 2, 3]})
    sparse, dense = describe_chart(record, Chart(("kernel", "loss"), over="step", joined=True)).panels[0].lines
    assert (sparse.x.tolist(), sparse.y.tolist(), sparse.style) == ([0, 2], [0, 2], "marked")
    assert (dense.x.tolist(), dense.y.tolist(), dense.style) == ([1, 2, 3], [3, 2, 1], "solid")
