from __future__ import annotations

import plotly.graph_objects as go

from dynascope.report.frame import frame


def of(**changes) -> go.Layout:
    options = {"log": (True, True), "spans": ((-3.0, 3.0), (-9.0, -8.0)), "residual": False, "ticks": {}, "letters": 0}
    return go.Layout(frame(("<time>", "loss"), **{**options, **changes}))


def test_words_stand_along_the_axes_and_cannot_become_markup():
    layout = of()
    assert (layout.xaxis.title.text, layout.yaxis.title.text) == ("&lt;time&gt;", "loss")
    assert layout.xaxis.automargin
    assert layout.yaxis.automargin


def test_digits_between_powers_of_ten_are_written_only_where_there_are_few_powers():
    layout = of()
    assert (layout.xaxis.minorloglabels, layout.yaxis.minorloglabels) == ("none", "complete")
    # Of a single number plotly would show two powers, whose digits would lie over each other.
    assert of(spans=((-3.0, 3.0), (1.0, 1.0))).yaxis.range == (0.5, 1.5)


def test_numbers_between_powers_are_those_that_have_room():
    steps = [of(spans=((0.0, 1.0), (0.0, decades))).yaxis.dtick for decades in (0.5, 1.0, 2.0, 3.0)]
    assert steps == [None, "D2", "D2", None]
    assert of(log=(False, False)).yaxis.dtick is None


def test_numbers_that_are_neither_small_nor_large_are_written_out():
    ways = [of(spans=((0.0, 1.0), span)).yaxis.exponentformat for span in ((-3.0, -1.0), (-9.0, -8.0), (0.0, 3.0))]
    assert ways == ["none", "power", "power"]


def test_names_at_the_ends_of_lines_have_room():
    assert of(letters=20).margin.r - of().margin.r == 130


def test_a_panel_of_residuals_stands_below_and_shares_the_horizontal_axis():
    layout = of(residual=True)
    assert layout.yaxis2.domain[1] < layout.yaxis.domain[0]
    assert layout.xaxis.anchor == "y2"
    assert layout.yaxis2.type == "linear"


def test_an_axis_of_text_is_not_logarithmic():
    axis = of(ticks={0: "a", 1: "b"}).xaxis
    assert (axis.type, list(axis.ticktext)) == ("linear", ["a", "b"])


def test_words_at_the_ends_of_an_axis_have_room_which_numbers_do_not_need():
    assert tuple(of(ticks={0: "weight downscaling", 1: "b"}).xaxis.range) == (-0.5, 1.5)
    assert of(ticks={1: "1", 2: "2"}).xaxis.range is None


def test_names_that_have_no_room_side_by_side_lean_to_the_left():
    assert of(ticks={0: "a", 1: "b"}).xaxis.tickangle is None
    assert of(ticks={0: "a" * 30, 1: "b" * 30}).xaxis.tickangle < 0
