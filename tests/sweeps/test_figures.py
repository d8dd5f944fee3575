from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.comparison.interval import student_half
from dynascope.sweeps.figures import draw_number


def values(**sizes):
    labels = {name: np.geomspace(0.1, 10, size) if name != "seed" else np.arange(size) for name, size in sizes.items()}
    draw = np.random.default_rng(0).normal(5, 1, size=tuple(sizes.values()))
    return xr.DataArray(draw, labels, tuple(sizes), name="loss")


def test_one_axis_gives_the_mean_with_the_interval_over_seeds():
    given = values(scale=5, seed=4)
    (axes,) = draw_number(given).axes
    np.testing.assert_allclose(axes.lines[0].get_ydata(), given.mean("seed"))
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    halves = [student_half(float(np.var(row, ddof=1)), 4) for row in given.to_numpy()]
    assert band.max() == pytest.approx(float((given.mean("seed") + halves).max()))
    assert axes.get_xscale() == "log"


def test_two_axes_give_one_map_and_three_give_one_for_each_value():
    given = values(scale=5, imbalance=4, seed=2)
    axes, _ = draw_number(given).axes  # the second is the colour bar
    np.testing.assert_allclose(axes.collections[0].get_array(), given.mean("seed").T)
    assert len(draw_number(values(scale=3, imbalance=4, width=5)).axes) == 6 + 1  # one place in the grid is empty


def test_infinite_values_are_left_white_and_do_not_change_the_colours():
    given = values(scale=5, imbalance=4)
    given[2, 1] = np.inf
    axes, _ = draw_number(given).axes
    drawn = axes.collections[0]
    assert drawn.get_array().mask.T.tolist() == (~np.isfinite(given.to_numpy())).tolist()
    assert (drawn.norm.vmin, drawn.norm.vmax) == (given.min(), given.to_numpy()[np.isfinite(given)].max())


def test_nothing_is_drawn_without_a_free_axis_or_without_values():
    assert draw_number(values(seed=3)) is None
    assert draw_number(values(scale=3) * np.nan) is None
    assert draw_number(values(scale=3, seed=2) * np.array([1.0, np.inf])) is None
