"""The options that say which data a prediction is for, and what the command says of what it made of them."""

from __future__ import annotations

import contextlib
import html
import io
import json

import numpy as np
import pandas as pd
import pytest

from dynascope.cli.commands import main
from dynascope.cli.user_data import UserData
from dynascope.results import store

DRAW = np.random.default_rng(0)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """As people have them: units, text, names of rows, blanks, a date."""
    size = DRAW.normal(size=30)
    columns = {
        "name": [f"house {i}" for i in range(30)],
        "area": 120 + 30 * size,
        "heating": np.where(np.arange(30) % 3, "gas", "wood"),
        "rooms": np.where(np.arange(30) == 4, np.nan, 2 + np.arange(30) % 5),
        "sold": ["2020-01-02"] * 30,
        "price": 1000 * (300 + 80 * size + DRAW.normal(size=30)),
    }
    path = tmp_path_factory.mktemp("data") / "houses.csv"
    pd.DataFrame(columns).to_csv(path, index=False, sep=";", decimal=",")
    return str(path)


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "trees.npz"
    x = DRAW.normal(size=(30, 2)) * [1.0, 1000.0]
    np.savez(path, x=x, y=x[:, 0])
    return str(path)


def spreads(data: str, **options) -> np.ndarray:
    return UserData(data, **options).task("linear", 20.0).inputs.std(axis=0)


def test_tables_are_standardised_unless_they_are_to_be_raw(table):
    options = {"target": ("price",), "drop": ("sold",), "missing": "mean"}
    task = UserData(table, **options).task("linear", 20.0)
    assert task.feature_names == ("area", "heating=wood", "rooms")
    np.testing.assert_allclose(spreads(table, **options), 1)
    assert spreads(table, **options, raw=True)[0] > 10
    assert UserData(table, **{**options, "missing": "drop"}).task("linear", 20.0).samples == 29


def test_arrays_are_as_they_are_unless_they_are_to_be_standardised(arrays):
    assert np.ptp(spreads(arrays)) > 100
    np.testing.assert_array_equal(spreads(arrays), spreads(arrays, raw=True))
    np.testing.assert_allclose(spreads(arrays, standardise=True), 1)


def test_digits_may_be_standardised():
    assert sorted(set(spreads("digits", standardise=True).round(12))) == [0, 1]  # three pixels are constant


def test_attention_is_told_where_its_inputs_come_from(table):
    options = {"target": ("price",), "drop": ("sold", "rooms")}
    task = UserData(table, **options).task("attention", 20.0)
    assert "30" in task.description[0]
    assert "houses.csv" in task.description[0]


@pytest.fixture(scope="module")
def predicted(table, tmp_path_factory):
    out, said = tmp_path_factory.mktemp("out"), io.StringIO()
    given = [table, "--target", "price", "--drop", "sold", "rooms", "--raw", "--network", "diagonal"]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        code = main(["predict", *given, "--out", str(out)])
    assert code == 0
    return said.getvalue(), out


@pytest.mark.slow
def test_what_was_done_to_the_data_is_the_first_thing_said(predicted):
    said, _ = predicted
    read, commas, left_out = said.splitlines()[:3]
    assert all(each in read for each in ("30", "houses.csv"))
    assert all(each in commas for each in ("'area'", "'rooms'", "'price'"))
    assert all(each in left_out for each in ("'sold'", "'rooms'"))
    assert "'name'" in said
    assert "'heating=" in said


@pytest.mark.slow
def test_the_page_and_the_record_say_it_too(predicted):
    _, out = predicted
    (page,), (record,) = out.glob("*.html"), out.glob("*.zarr.zip")
    text = page.read_text("utf-8")
    description = store.load(record).predicted.attrs["description"]
    assert all(html.escape(sentence).replace("&#x27;", "&#39;") in text for sentence in description)
    assert "--drop sold rooms --raw" in store.load(record).provenance.command


@pytest.mark.slow
def test_units_that_are_far_apart_are_warned_of(arrays, tmp_path):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        main(["predict", arrays, "--network", "diagonal", "--json", "--out", str(tmp_path)])
    (warning,) = (each for each in json.loads(said.getvalue())["warnings"] if "'x2'" in each)
    assert "standard deviation" in warning


def test_what_was_done_is_said_where_anything_was_done(table, arrays):
    assert UserData(table).prepares
    assert UserData(arrays, standardise=True).prepares
    assert UserData(arrays, missing="mean").prepares
    assert not UserData(arrays).prepares
    assert not UserData("digits").prepares
