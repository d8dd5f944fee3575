from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from dynascope import plot
from dynascope.errors import InputError
from dynascope.results import describe, make_record

TIME = np.linspace(0.0, 10.0, 101)


def study(*, seeds: int = 0, image: bool = True, observed: bool = True) -> xr.DataTree:
    strengths = np.stack([1 / (1 + np.exp(3 - TIME)), 1 / (1 + np.exp(6 - TIME))], axis=1)
    losses = 1 - strengths @ [0.6, 0.3]
    ensemble = ["seed"] if seeds else []
    repeat = (lambda values: np.stack([values] * seeds)) if seeds else np.asarray
    predicted = make_record(
        {
            "jump_time": (["jump"], [3.0, 6.0]),
            "loss_before": (["jump"], [1.0, 0.4]),
            "loss_after": (["jump"], [0.4, 0.1]),
            "input_feature": (["jump", "feature"], [[0.0, 2.0, -1.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.25]]),
            "mode_strength": (["time", "mode"], strengths),
        },
        {"jump": [1, 2], "feature": ["$a", "b", "c", "d", "e", "f"], "time": TIME, "mode": [1, 2]},
        attributes={"theory": "an example", "image_shape": [2, 3] if image else None},
    )
    parts = {"predicted": predicted}
    if observed:
        parts["observed"] = make_record(
            {
                "loss": ([*ensemble, "time"], repeat(losses)),
                "mode_strength": ([*ensemble, "time", "mode"], repeat(strengths)),
            },
            {"time": TIME, "mode": [1, 2], **({"seed": np.arange(seeds)} if seeds else {})},
        )
    return xr.DataTree.from_dict(parts)


def styles(axes):
    return [line.get_linestyle() for line in axes.lines]


def test_the_prediction_is_dashed_over_the_solid_observation():
    axes = plot.staircase(study())
    observed, predicted = axes.lines
    assert (observed.get_linestyle(), predicted.get_linestyle()) == ("-", "--")
    assert predicted.get_zorder() > observed.get_zorder()
    assert to_hex(observed.get_color()) != to_hex(predicted.get_color())
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["observed", "predicted"]


def test_the_jumps_are_numbered():
    assert [text.get_text() for text in plot.staircase(study()).texts] == ["1", "2"]


def test_every_member_of_an_ensemble_is_drawn_thin():
    alone, ensemble = plot.staircase(study()), plot.staircase(study(seeds=5))
    assert styles(ensemble).count("-") == 5
    assert ensemble.lines[0].get_linewidth() < alone.lines[0].get_linewidth()


def test_both_sides_of_a_mode_share_a_colour():
    axes = plot.curves(study(), "mode_strength")
    assert styles(axes) == ["-", "-", "--", "--"]
    colours = [to_hex(line.get_color()) for line in axes.lines]
    assert colours[:2] == colours[2:]
    assert colours[0] != colours[1]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["observed", "predicted", "mode 1", "mode 2"]


def test_axes_are_logarithmic_where_asked():
    axes = plot.staircase(study(), log_time=True)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    axes = plot.curves(study(), "mode_strength", log_values=True)
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")


@pytest.mark.parametrize(("loss", "scale"), [(lambda x: x**-0.4, "log"), (lambda x: 1.2 - x / 1e5, "linear")])
def test_a_power_law_is_drawn_between_logarithmic_axes(loss, scale):
    samples = np.geomspace(10, 1e5, 9)
    record = make_record({"test_loss": (["samples"], loss(samples))}, {"samples": samples})
    axes = plot.curves(record, "test_loss")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", scale)


def test_given_axes_are_drawn_on_and_returned():
    grid = Figure().subplots(1, 3)
    tree = study()
    assert plot.staircase(tree, grid[0]) is grid[0]
    assert plot.curves(tree, "mode_strength", grid[1]) is grid[1]
    assert plot.learned_features(tree, grid[2]) is grid[2]
    assert all(axes.has_data() for axes in grid)


def test_pictures_keep_their_pixels_each_on_a_scale_symmetric_around_zero():
    tree = study()
    (image,) = plot.learned_features(tree).images
    assert image.get_clim() == (-1, 1)
    sheet = np.asarray(image.get_array().filled(np.nan))
    rows, columns = np.nonzero(~np.isnan(sheet))
    first = sheet[rows.min() : rows.max() + 1, columns.min() : columns.min() + 3]
    np.testing.assert_allclose(first, [[0.0, 1.0, -0.5], [0.25, 0.0, 0.0]])
    assert np.nanmax(sheet[:, columns.min() + 3 :]) == 1.0


def test_features_that_are_not_pictures_are_a_heat_map_with_names():
    axes = plot.learned_features(study(image=False))
    (image,) = axes.images
    assert image.get_array().shape == (2, 6)
    assert image.get_clim() == (-2, 2)
    assert [label.get_text() for label in axes.get_xticklabels()] == [r"\$a", "b", "c", "d", "e", "f"]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"seeds": 3}, {"image": False}, {"observed": False}])
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_figure_of_all_that_a_tree_holds_can_be_saved(tmp_path, options, suffix):
    figure = plot.figure(study(**options))
    path = plot.save_figure(figure, tmp_path / f"figure{suffix}")
    assert path.stat().st_size > 1000
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_the_figure_has_a_panel_for_each_thing():
    labels = [axes.get_ylabel() for axes in plot.figure(study(image=False)).axes]
    assert labels[:2] == [describe(name)[0] for name in ("loss", "mode_strength")]
    assert len(labels) == 4


@pytest.mark.slow
def test_equal_figures_give_equal_files(tmp_path):
    for name in ("a.png", "b.png"):
        plot.save_figure(plot.figure(study()), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_names_with_dollar_signs_are_no_formulas(tmp_path):
    # A single backslash command in dollars would stop matplotlib's formula parser.
    tree = study(image=False)
    predicted = tree["predicted"].to_dataset().assign_coords(feature=[r"$\x$", "b", "c", "d", "e", "f"])
    assert plot.save_figure(plot.figure(predicted), tmp_path / "figure.png").exists()


@pytest.mark.parametrize("name", ["figure.gif", "figure"])
def test_an_unknown_format_is_bad_input(tmp_path, name):
    with pytest.raises(InputError, match="has no supported suffix"):
        plot.save_figure(plot.figure(study()), tmp_path / name)


@pytest.mark.parametrize(
    "draw", [plot.figure, plot.staircase, plot.learned_features, lambda record: plot.curves(record, "accuracy")]
)
def test_a_record_that_holds_nothing_to_draw_is_bad_input(draw):
    record = make_record({"quality": (["layer"], [1.0])}, {"layer": [1]})
    with pytest.raises(InputError):
        draw(record)


@pytest.mark.slow
def test_a_plane_shows_each_path_from_its_beginning():
    record = make_record(
        {"a": (["time"], [2.0, 0.0, 1.0]), "b": (["time"], [3.0, 1.0, 1.0])}, {"time": [0.0, 1.0, 2.0]}
    )
    axes = plot.plane(record, "a", "b")
    path, dot = axes.lines
    assert (path.get_xdata().tolist(), path.get_ydata().tolist()) == ([2.0, 0.0, 1.0], [3.0, 1.0, 1.0])
    assert (dot.get_xdata().tolist(), dot.get_ydata().tolist()) == ([2.0], [3.0])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("a", "b")
