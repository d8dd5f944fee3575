from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import xarray as xr
from matplotlib.image import imread

from dynascope.report.patterns import Patterns, patterns
from dynascope.results import from_tree, make_record


def of(values: np.ndarray, **attributes) -> Patterns:
    jumps, inputs = values.shape
    predicted = make_record(
        {"input_feature": (["jump", "feature"], values)},
        {"jump": np.arange(1, jumps + 1), "feature": [f"x{i}" for i in range(inputs)]},
        attributes=attributes,
    )
    found = patterns(from_tree(xr.DataTree.from_dict({"predicted": predicted})))
    assert found is not None
    return found


def test_a_tree_without_features_has_no_patterns():
    assert patterns(from_tree(make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}))) is None


def test_a_table_has_a_row_for_each_input_coloured_by_its_share_of_the_largest():
    found = of(np.array([[0.0, 2.0], [-1.0, 0.5]]))
    assert found.jumps == ["1", "2"]
    assert found.pictures == []
    (first, cells), (second, others) = found.rows
    assert (first, second) == ("x0", "x1")
    assert cells == [(0, False, "0"), (50, False, "−1")]
    assert others == [(100, True, "2"), (25, True, "0.5")]


def test_numbers_have_the_digits_of_the_largest():
    ((_, (first, second)),) = of(np.array([[87.0], [-0.069]])).rows
    assert (first.number, second.number) == ("87", "0")


def test_of_many_inputs_those_are_shown_that_count_the_most_in_the_order_of_the_data():
    values = np.full((1, 60), 0.01)
    values[0, [50, 7]] = 1.0, -2.0
    found = of(values)
    names = [name for name, _ in found.rows]
    assert (len(names), names[7], names[-1]) == (40, "x7", "x50")
    assert "60" in found.caption


def test_numbers_are_written_where_there_is_room_for_them():
    assert of(np.eye(8)).written
    assert not of(np.eye(9)).written


def test_the_paper_shows_through_a_picture_where_it_is_zero():
    found = of(np.array([[0.0, 3.0, -1.5, 0.0]]), image_shape=[2, 2])
    (source,) = found.pictures
    drawn = imread(io.BytesIO(base64.b64decode(source.split(",")[1])), format="png")
    # Eight bits.
    assert drawn[..., 3] == pytest.approx(np.array([[0.0, 1.0], [0.5, 0.0]]), abs=0.01)
    red, blue = drawn[0, 1], drawn[1, 0]
    assert red[0] > red[2]
    assert blue[2] > blue[0]


def test_the_effect_of_a_neuron_has_a_direction_and_a_size():
    predicted = make_record(
        {
            "learned_direction": (["jump", "feature"], np.eye(3, 2)),
            "settled_direction": (["jump", "weight"], np.eye(3, 2)),
            "output_effect": (["jump", "target"], [[9.98], [-3.0], [np.nan]]),
        },
        {"jump": [1, 2, 3], "feature": ["temp", "wind"], "weight": [0, 1], "target": ["load"]},
    )
    found = patterns(from_tree(xr.DataTree.from_dict({"predicted": predicted})))
    assert found is not None
    assert found.effects == [("load", [(True, "9.98"), (False, "3"), None])]
    assert "on the plateau after the jump" in found.caption
    without = of(np.eye(3, 2))
    assert without.effects == []
    assert "plateau" not in without.caption


def test_no_more_pictures_than_a_page_can_hold():
    found = of(np.eye(30, 4), image_shape=[2, 2])
    assert len(found.pictures) == len(found.jumps) == 24
    assert all(count in found.caption for count in ("24", "30"))
    assert found.size < 20_000
