from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.errors import InputError
from dynascope.plot import Chart
from dynascope.plot.layout import direct_labels, lay_out
from dynascope.plot.traces import OBSERVED, PREDICTED, Trace
from dynascope.results import describe, make_record

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


def test_both_sides_of_a_member_share_a_colour(tree):
    layout = lay_out(tree, Chart("strength"))
    assert [(line.side, line.label) for line in layout.traces] == [
        ("observed", "mode 1"),
        ("observed", "mode 2"),
        ("predicted", "mode 1"),
        ("predicted", "mode 2"),
    ]
    colours = [line.colour for line in layout.traces]
    assert colours[:2] == colours[2:]
    assert colours[0] != colours[1]
    assert layout.y_label == describe("strength")[0]


def test_a_line_alone_has_the_colour_of_its_side(tree):
    layout = lay_out(tree, Chart("accuracy"))
    assert [line.colour for line in layout.traces] == [OBSERVED, PREDICTED]
    assert layout.y_label == "training"


def test_several_variables_are_told_apart_by_their_words(tree):
    assert lay_out(tree, Chart(("accuracy", "test_accuracy"))).labels == ["training", describe("test_accuracy")[0]]
    assert lay_out(tree, Chart(("accuracy", "test_accuracy"), words=("a", "b"))).labels == ["a", "b"]
    assert lay_out(tree, Chart(("accuracy", "strength"))).labels == [
        "training",
        f"{describe('strength')[0]}, mode 1",
        f"{describe('strength')[0]}, mode 2",
    ]


def test_what_theory_took_from_training_is_drawn_as_observed(tree):
    theory = xr.DataTree.from_dict({"predicted": tree["predicted"].to_dataset()})
    chart = Chart(("accuracy", "test_accuracy"), trained=("accuracy",))
    assert [line.side for line in lay_out(theory, chart).traces] == ["observed", "predicted"]


def test_only_the_members_that_are_named_are_drawn(tree):
    layout = lay_out(tree, Chart("strength", members={"mode": (2, 1)}))
    assert layout.labels == ["mode 2", "mode 1"]


def test_of_one_member_the_lines_do_not_say_which(tree):
    layout = lay_out(tree, Chart("strength", members={"mode": (2,)}))
    assert layout.labels == [""]
    np.testing.assert_array_equal(layout.traces[1].y, TIME**2)


@pytest.mark.parametrize(
    ("places", "labels"), [((-1, 0), ["mode 1", "mode 2"]), ((0, 1, 7), ["mode 1", "mode 2"]), ((-1,), [""])]
)
def test_members_are_chosen_by_their_places(tree, places, labels):
    layout = lay_out(tree, Chart("strength", places={"mode": places}))
    assert layout.labels == labels
    np.testing.assert_array_equal(layout.traces[-1].y, TIME**2)


def test_a_path_of_one_member_has_its_own_interval_and_place(tree):
    chart = Chart("strength", over="spread", places={"mode": (1,)}, interval=("low", "high"))
    observed, _ = lay_out(tree, chart).series
    np.testing.assert_array_equal(observed.trace.x, np.full(5, 0.3))
    np.testing.assert_array_equal(observed.low, TIME**2 + 0.5 - 0.1)


def test_a_dimension_is_called_by_its_symbol(tree):
    assert lay_out(tree, Chart("strength", symbols={"mode": "k"})).labels == ["k = 1", "k = 2"]


def test_members_without_a_symbol_are_not_told_apart(tree):
    layout = lay_out(tree, Chart("strength", symbols={"mode": ""}))
    assert layout.labels == [""]
    assert not any(line.alone for line in layout.traces)


def test_what_is_too_small_is_left_out(tree):
    layout = lay_out(tree, Chart("strength", decades=0.5, interval=("low", "high")))
    least = 1.5 / 10**0.5
    drawn = layout.traces[0].y
    assert drawn[np.isfinite(drawn)].min() >= least
    np.testing.assert_array_equal(np.isnan(drawn), least > TIME + 0.5)
    assert layout.series[0].low.min() == least


def test_a_staircase_leaves_out_what_is_too_small():
    record = make_record({"loss": (["time"], [1.0, 0.5, 1e-3, 1e-9, 0.0])}, {"time": TIME})
    (line,) = lay_out(record, Chart("loss", staircase=True, log="y", decades=4)).traces
    np.testing.assert_array_equal(line.y, [1.0, 0.5, 1e-3, np.nan, np.nan])


def test_an_interval_belongs_to_its_member(tree):
    _, second, *_ = lay_out(tree, Chart("strength", interval=("low", "high"))).series
    np.testing.assert_array_equal(second.low, TIME**2 + 0.5 - 0.1)
    np.testing.assert_array_equal(second.high, TIME**2 + 0.5 + 0.2)
    _, second, *_ = lay_out(tree, Chart("strength", error="spread")).series
    np.testing.assert_array_equal(second.high, second.trace.y + 0.3)


def test_an_interval_of_one_side_is_drawn_on_that_side(tree):
    tree["predicted"] = xr.DataTree(tree["predicted"].to_dataset().drop_vars("low"))
    observed, predicted = lay_out(tree, Chart("strength", members={"mode": (1,)}, interval=("low", "high"))).series
    assert observed.low is not None
    assert predicted.low is None


def test_the_residual_is_observed_less_predicted(tree):
    layout = lay_out(tree, Chart("strength", residual=True))
    for line in layout.residual:
        # Differences of numbers of order one.
        np.testing.assert_allclose(line.y, 0.5, rtol=1e-15)


def test_a_variable_over_another_is_a_path(tree):
    layout = lay_out(tree, Chart("test_accuracy", over="accuracy"))
    np.testing.assert_array_equal(layout.traces[0].x, TIME + 0.5)
    assert (layout.x_label, layout.y_label) == ("training", describe("test_accuracy")[0])


def test_labels_that_are_text_are_ticks(tree):
    layout = lay_out(tree, Chart("exponent_found", over="start"))
    assert layout.ticks == {0: "small", 1: "large"}
    assert layout.named
    assert layout.points
    np.testing.assert_array_equal(layout.traces[0].x, [0, 1])


def test_an_axis_that_counts_a_few_things_has_a_tick_for_each(tree):
    tree["observed"] = xr.DataTree(tree["observed"].to_dataset().assign(last=("mode", [1.0, 2.0])))
    assert lay_out(tree, Chart("last", over="mode")).ticks == {1: "1", 2: "2"}
    assert lay_out(tree, Chart("last", over="mode", log="x")).ticks == {}


def test_own_words_stand_along_the_axes(tree):
    layout = lay_out(tree, Chart("accuracy", x_label="t", y_label="share", caption="{observed.accuracy:last}"))
    assert (layout.x_label, layout.y_label, layout.caption) == ("t", "share", "1.5")


def test_a_side_that_has_a_variable_over_something_else_is_left_out(tree):
    jumps = make_record({"accuracy": (["jump"], [0.5])}, {"jump": [1]}, attributes={"theory": "an example"})
    tree["predicted"] = xr.DataTree(jumps)
    assert [line.side for line in lay_out(tree, Chart("accuracy")).traces] == ["observed"]


@pytest.mark.parametrize(
    ("chart", "argument", "problem"),
    [
        (Chart("stength"), "variables", "a figure names 'stength', .* choose from strength"),
        (Chart("strength", interval=("low", "hihg")), "variables", "a figure names 'hihg'"),
        (Chart("strength", error="sprad"), "variables", "a figure names 'sprad'"),
        (Chart("strength", over="step"), "over", "draws 'strength' over 'step', and it runs over mode, time"),
        (Chart("strength", over="accuracy"), "over", "draws 'strength' over 'accuracy'"),
        (Chart("strength", members={"mode": (3,)}), "members", r"asks for mode \[3\] of 'strength': choose from 1, 2"),
        (Chart("strength", caption="{observed.stength}"), "caption", "there is no 'stength'"),
    ],
)
def test_what_the_tree_lacks_is_bad_input_that_names_it(tree, chart, argument, problem):
    with pytest.raises(InputError, match=problem) as caught:
        lay_out(tree, chart)
    assert caught.value.argument == argument


def ends(heights: list[float]) -> list[Trace]:
    x = np.array([0.0, 1.0])
    return [Trace("observed", f"line {i}", OBSERVED, True, "time", x, x * y) for i, y in enumerate(heights)]


def test_names_at_the_ends_of_lines_keep_apart_and_in_order():
    placed = direct_labels(ends([1.0, 0.999, 0.998, 0.5, 0.0, 0.001]))
    heights = np.array([y for _, y, _, _ in placed])
    assert [label for _, _, label, _ in placed] == [f"line {i}" for i in (4, 5, 3, 2, 1, 0)]
    # Of axes of height one; less than the rounding of a sum of a few such numbers.
    assert np.diff(heights).min() > 0.055 - 1e-12
    assert heights[2] == 0.5


def test_more_names_than_have_room_are_thinned_and_keep_both_ends():
    labels = [label for _, _, label, _ in direct_labels(ends(list(np.linspace(0, 1, 60))))]
    assert len(labels) == 18
    assert (labels[0], labels[-1]) == ("line 0", "line 59")


def test_a_line_without_a_finite_value_is_not_named():
    assert direct_labels(ends([np.nan])) == []
    assert [label for _, _, label, _ in direct_labels(ends([-1.0, 1.0]), log_y=True)] == ["line 1"]


def test_lines_that_end_upon_each_other_are_named_in_their_order_from_the_top():
    placed = direct_labels(ends([1.0, 1.0 + 1e-9, 1.0 - 1e-9, 0.0]))
    assert [label for _, _, label, _ in placed] == ["line 3", "line 2", "line 1", "line 0"]
