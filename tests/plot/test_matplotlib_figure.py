from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

from dynascope import plot
from dynascope.errors import InputError
from dynascope.plot.figures import draw_chart
from dynascope.results import Chart, describe, make_record
from dynascope.results.chart import to_attributes

TIME = np.linspace(0.0, 1.0, 5)


def tree(modes: int = 2) -> xr.DataTree:
    strength = np.stack([(1 + TIME) * mode for mode in range(1, modes + 1)])
    record = make_record(
        {
            "strength": (["mode", "time"], strength),
            "low": (["mode", "time"], strength - 0.1),
            "high": (["mode", "time"], strength + 0.2),
            "loss": (["time"], 1 - TIME),
        },
        {"time": TIME, "mode": np.arange(1, modes + 1)},
        names={"loss": ("cost $x$", "1")},
    )
    return xr.DataTree.from_dict({"observed": record, "predicted": record.drop_vars(["low", "high"])})


def test_the_prediction_is_dashed_over_the_observation_in_the_same_colour():
    (axes,) = draw_chart(tree(), Chart("strength", log="xy")).axes
    assert [line.get_linestyle() for line in axes.lines] == ["-", "-", "--", "--"]
    colours = [to_hex(line.get_color()) for line in axes.lines]
    assert colours[:2] == colours[2:]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["observed", "predicted", "mode 1", "mode 2"]


def test_paths_that_go_somewhere_end_in_a_head_where_they_were_observed():
    (axes,) = draw_chart(tree(), Chart("strength", arrows=True)).axes
    ends = [(round(arrow.xy[0], 6), round(arrow.xy[1], 6)) for arrow in axes.texts if arrow.arrow_patch]
    assert ends == [(1.0, 2.0), (1.0, 4.0)]


def test_nothing_is_joined_between_names():
    record = make_record({"found": (["start"], [1.0, 2.0])}, {"start": ["small", "large"]})
    both = xr.DataTree.from_dict({"observed": record, "predicted": record})
    (axes,) = draw_chart(both, Chart("found", over="start")).axes
    assert [(line.get_linestyle(), line.get_marker()) for line in axes.lines] == [("None", "o"), ("None", "_")]


def test_more_than_four_lines_are_named_at_their_ends():
    (axes,) = draw_chart(tree(5), Chart("strength")).axes
    assert [text.get_text() for text in axes.texts] == [f"mode {i}" for i in range(1, 6)]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["observed", "predicted"]


def test_an_interval_is_a_band_and_of_points_it_is_bars():
    band = draw_chart(tree(), Chart("strength", interval=("low", "high"))).axes[0]
    assert len(band.collections) == 2
    bars = draw_chart(tree(), Chart("strength", interval=("low", "high"), points=True)).axes[0]
    assert len(bars.containers) == 2
    lower, upper = bars.containers[0].lines[2][0].get_segments()[0][:, 1]
    assert (lower, upper) == pytest.approx((0.9, 1.2))
    assert [line.get_linestyle() for line in bars.lines].count("--") == 2


def test_the_residual_has_a_panel_of_its_own():
    above, below = draw_chart(tree(), Chart("strength", residual=True)).axes
    assert above.get_ylabel() == describe("strength")[0]
    np.testing.assert_array_equal(below.lines[1].get_ydata(), np.zeros(5))


def test_the_caption_stands_below():
    figure = draw_chart(tree(), Chart("loss", title="A title", caption="It falls."))
    assert figure.get_supxlabel() == "It falls."
    assert figure.axes[0].get_title(loc="left") == "A title"
    assert figure.axes[0].get_ylabel() == r"cost \$x\$"


def test_the_figure_of_a_tree_is_made_of_what_it_declares(tmp_path):
    declaring = tree()
    declaring.attrs["figures"] = to_attributes([Chart("strength"), Chart("loss", residual=True)])
    figure = plot.figure(declaring)
    assert [axes.get_ylabel() for axes in figure.axes[:2]] == [describe("strength")[0], r"cost \$x\$"]
    assert len(figure.axes) == 3
    assert plot.save_figure(figure, tmp_path / "figure.png").exists()


def test_a_figure_that_names_a_missing_variable_is_bad_input():
    declaring = tree()
    declaring.attrs["figures"] = to_attributes([Chart("accuracy")])
    with pytest.raises(InputError, match="one of the figures contains 'accuracy'"):
        plot.figure(declaring)
