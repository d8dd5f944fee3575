from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from dynascope.plot.drawing import Axis, Drawing, Panel, describe_chart, undeclared
from dynascope.plot.lines import Line
from dynascope.report.plotly_figure import plotly_figure
from dynascope.results import Chart, from_tree, make_record

TIME = np.linspace(0.0, 1.0, 5)


def tree(modes: int = 2, seeds: int = 0) -> xr.DataTree:
    strength = np.stack([(1 + TIME) * mode for mode in range(1, modes + 1)])
    record = make_record(
        {
            "strength": (["mode", "time"], strength),
            "low": (["mode", "time"], strength - 0.5),
            "high": (["mode", "time"], strength + 0.25),
            "tiny": (["time"], [1.0, 1e-20, 1e-42, 1e-60, 0.0]),
            "found": (["start"], [1.0, 2.0]),
        },
        {"time": TIME, "mode": np.arange(1, modes + 1), "start": ["<small>", "large"]},
    )
    observed = record.expand_dims(seed=np.arange(seeds)) if seeds else record
    return xr.DataTree.from_dict({"observed": observed, "predicted": record.drop_vars(["low", "high"])})


def drawn(chart: Chart, **options) -> go.Figure:
    return plotly_figure(describe_chart(tree(**options), chart))


def test_a_chart_is_solid_and_dashed_in_the_colours_of_its_members():
    figure = drawn(Chart("strength", log="xy"))
    *lines, observed, predicted = figure.data
    assert [line.line.dash is None for line in lines] == [True, True, False, False]
    colours = [line.line.color for line in lines]
    assert colours[:2] == colours[2:]
    assert [line.showlegend for line in lines] == [True, True, False, False]
    assert (observed.name, observed.showlegend, observed.line.dash) == ("observed", True, None)
    assert (predicted.name, predicted.showlegend, predicted.line.dash) == ("predicted", True, lines[-1].line.dash)
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")


def test_more_than_four_lines_are_named_at_their_ends_and_not_in_a_legend():
    figure = drawn(Chart("strength"), modes=5)
    *lines, names, _, _ = figure.data
    assert list(names.text) == [f"mode {i}" for i in range(1, 6)]
    assert list(names.textfont.color) == [line.line.color for line in lines[:5]]
    assert not any(line.showlegend for line in lines)
    assert figure.layout.margin.r > drawn(Chart("strength")).layout.margin.r


def test_paths_that_go_somewhere_end_in_a_head_where_they_were_observed():
    figure = drawn(Chart("strength", arrows=True, symbols={"mode": ""}))
    observed, predicted = figure.data
    assert (observed.mode, observed.marker.symbol, predicted.mode) == ("lines+markers", "arrow", "lines")
    at_ends = np.isnan(np.append(observed.y[1:], np.nan))
    np.testing.assert_array_equal(observed.marker.size > 0, at_ends)


def test_an_interval_is_a_band_and_of_points_it_is_bars():
    bands = [mark for mark in drawn(Chart("strength", interval=("low", "high"))).data if mark.fill == "toself"]
    assert len(bands) == 2
    np.testing.assert_array_equal(bands[0].y, [*(1.25 + TIME), *(0.5 + TIME)[::-1]])
    points, *_ = drawn(Chart("strength", interval=("low", "high"), points=True)).data
    assert points.mode == "markers"
    np.testing.assert_array_equal(points.error_y.array, np.full(5, 0.25))
    np.testing.assert_array_equal(points.error_y.arrayminus, np.full(5, 0.5))


def test_a_band_stays_above_zero_where_the_axis_is_logarithmic():
    chart = Chart("strength", interval=("low", "high"), log="y", members={"mode": (1,)})
    drawing = describe_chart(tree(), chart)
    drawing.panels[0].lines[0].low[0] = -1.0
    (band,) = [mark for mark in plotly_figure(drawing).data if mark.fill == "toself"]
    assert len(band.y) == 8
    assert np.min(band.y) > 0


def test_the_residual_has_a_panel_of_its_own():
    figure = drawn(Chart("strength", residual=True))
    below = [mark for mark in figure.data if mark.yaxis == "y2"]
    assert len(below) == 2
    np.testing.assert_array_equal(below[0].y, np.zeros(5))
    assert figure.layout.yaxis2.domain[1] < figure.layout.yaxis.domain[0]
    assert figure.layout.xaxis.anchor == "y2"


def test_labels_that_are_text_stand_at_the_ticks_and_cannot_become_markup():
    figure = drawn(Chart("found", over="start"))
    assert [(mark.mode, mark.marker.symbol) for mark in figure.data] == [("markers", None), ("markers", "line-ew-open")]
    axis = figure.layout.xaxis
    assert (list(axis.tickvals), list(axis.ticktext)) == ([0, 1], ["&lt;small&gt;", "large"])


def test_numbers_that_single_precision_loses_are_kept_in_double():
    tiny, *_ = drawn(Chart("tiny")).data
    assert tiny.y.dtype == np.float64
    np.testing.assert_array_equal(tiny.y, [1.0, 1e-20, 1e-42, 1e-60, 0.0])
    strength, *_ = drawn(Chart("strength")).data
    assert strength.y.dtype == np.float32


def test_members_of_an_ensemble_share_a_trace_with_gaps():
    figure = drawn(Chart("strength", members={"mode": (1,)}), seeds=3)
    observed, predicted = figure.data
    assert (observed.meta, predicted.meta) == (3, 1)
    assert np.flatnonzero(np.isnan(observed.y)).tolist() == [5, 11]


def test_numbers_whose_ratio_is_beyond_all_numbers_are_drawn():
    record = make_record({"found": (["time"], [1e-300, 1.0, 1e300])}, {"time": [0.0, 1.0, 2.0]})
    figure = plotly_figure(describe_chart(record, Chart("found", log="y")))
    assert figure.layout.yaxis.minorloglabels == "none"
    np.testing.assert_array_equal(figure.data[0].y, [1e-300, 1.0, 1e300])


def test_a_staircase_that_a_late_jump_stretches_names_what_each_jump_learns():
    columns = {"jump_time": [30.0, 40.0, 9e3], "loss_before": [1.0, 0.5, 0.2], "loss_after": [0.5, 0.2, 0.1]}
    record = make_record({name: (["jump"], values) for name, values in columns.items()}, {"jump": [1, 2, 3]})
    (drawing,) = undeclared(from_tree(record))
    figure = plotly_figure(drawing)
    assert figure.layout.xaxis.type == "log"
    assert [tuple(each)[:3] for each in figure.data[-1].customdata] == list(zip(*columns.values(), strict=True))


def layout(*, y: tuple[float, float] = (-9.0, -8.0), log: bool = True, words: tuple[str, ...] = ()) -> go.Layout:
    """The layout of a line between these powers of ten."""
    line = Line("observed", "", np.array([1e-3, 1e3]), np.array([10 ** y[0], 10 ** y[1]]))
    ticks = Axis("<time>", log, (-3.0, 3.0), dict(enumerate(words)), (-0.5, len(words) - 0.5) if words else None)
    return plotly_figure(Drawing(Chart("loss"), ticks, (Panel([line], Axis("loss", log, y)),))).layout


def test_words_stand_along_the_axes_clear_of_numbers_and_cannot_become_markup():
    drawn = layout()
    assert (drawn.xaxis.title.text, drawn.yaxis.title.text) == ("&lt;time&gt;", "loss")
    assert drawn.xaxis.automargin
    assert drawn.yaxis.automargin


def test_digits_between_powers_of_ten_are_written_only_where_there_are_few_powers():
    assert (layout().xaxis.minorloglabels, layout().yaxis.minorloglabels) == ("none", "complete")
    # Of a single number plotly would show two powers, whose digits would lie over each other.
    assert layout(y=(1.0, 1.0)).yaxis.range == (0.5, 1.5)
    assert [layout(y=(0.0, decades)).yaxis.dtick for decades in (0.5, 1.0, 2.0, 3.0)] == [None, "D2", "D2", None]
    assert layout(log=False).yaxis.dtick is None


def test_numbers_that_are_neither_small_nor_large_are_written_out():
    ways = [layout(y=span).yaxis.exponentformat for span in ((-3.0, -1.0), (-9.0, -8.0), (0.0, 3.0))]
    assert ways == ["none", "power", "power"]
    assert layout(log=False).xaxis.exponentformat == "none"


def test_words_at_the_ends_of_an_axis_have_room_and_lean_where_they_are_long():
    short, long = layout(words=("a", "b")).xaxis, layout(words=("a" * 30, "b" * 30)).xaxis
    assert (short.type, short.range, short.tickangle) == ("linear", (-0.5, 1.5), None)
    assert long.tickangle < 0


def test_sparse_measurements_are_a_line_with_marked_points():
    record = make_record({"kernel": (["step"], [1.0, np.nan, 2.0])}, {"step": [0, 1, 2]})
    (line,) = plotly_figure(describe_chart(record, Chart("kernel", over="step", joined=True))).data
    assert line.mode == "lines+markers"
    assert np.isfinite(line.y).all()
