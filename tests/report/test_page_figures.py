from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.errors import InputError
from dynascope.report.page_figures import page_figures
from dynascope.results import Chart, Result, describe, from_tree, make_record
from dynascope.results.chart import to_attributes

TIME = np.linspace(0.1, 1.0, 50)
ROOM = 100_000
TITLE = {name: describe(name)[0].capitalize() for name in ("loss", "strength", "low", "high")}


def view(*charts: Chart, sides: tuple[str, ...] = ("observed", "predicted"), members: int = 2) -> Result:
    values = np.outer(np.arange(1, members + 1), TIME)
    record = make_record(
        {
            "loss": (["time"], TIME),
            "strength": (["mode", "time"], values),
            "low": (["mode", "time"], values),
            "high": (["mode", "time"], values),
        },
        {"time": TIME, "mode": np.arange(1, members + 1)},
    )
    tree = xr.DataTree.from_dict({name: record.copy() for name in sides})
    if charts:
        tree.attrs["figures"] = to_attributes(charts)
    return from_tree(tree)


def test_the_declared_figures_come_first_in_their_order_and_the_others_are_apart():
    declared, others = page_figures(view(Chart("strength", interval=("low", "high")), Chart("loss", title="L")), ROOM)
    assert [each.title for each in declared] == [TITLE["strength"], "L"]
    assert others == []
    declared, others = page_figures(view(Chart("strength")), ROOM)
    assert [each.title for each in others] == [TITLE[name] for name in ("loss", "low", "high")]


def test_without_declared_figures_the_first_is_shown():
    shown, others = page_figures(view(), ROOM)
    assert [each.title for each in shown] == [TITLE["loss"]]
    assert len(others) == 3


def test_a_caption_says_when_lines_are_left_out():
    (figure,), _ = page_figures(view(Chart("strength"), members=60), 20_000)
    assert "120" in figure.caption


def test_the_axes_say_what_they_are_at_first_and_a_second_panel_makes_a_figure_tall():
    (figure,), _ = page_figures(view(Chart("loss", log="y", residual=True)), ROOM)
    assert (figure.log_x, figure.log_y, figure.tall) == (False, True, True)


def test_figures_keep_to_their_room():
    declared, others = page_figures(view(members=40), 60_000)
    assert sum(len(each.content) for each in (*declared, *others)) <= 60_000


def test_a_figure_of_what_is_missing_is_bad_input():
    with pytest.raises(InputError, match="one of the figures contains 'accuracy'"):
        page_figures(view(Chart("accuracy")), ROOM)
