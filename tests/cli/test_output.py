from __future__ import annotations

import errno
import os

import pytest

from dynascope.cli.output import open_page, page_of, print_paths, replace_results, result_name, write_results
from dynascope.comparison import compare
from dynascope.errors import InputError
from dynascope.results import make_record, store


@pytest.fixture
def tree():
    curve = make_record({"loss": (("time",), [1.0, 0.5])}, {"time": [0.0, 1.0]})
    return compare(curve, curve)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, "dynascope-trees"),
        ({"scale": 1e-6, "seed": 3}, "dynascope-trees-scale=1e-06-seed=3"),
        ({"check": True, "whitened": False}, "dynascope-trees-check-whitened=False"),
        ({"initial_strength": 0.1, "widths": [4, 8]}, "dynascope-trees-initial-strength=0.1-widths=4,8"),
        ({"only": "größe / <b>"}, "dynascope-trees-only=größe----b-"),
    ],
)
def test_results_are_named_after_what_was_changed(changed, name):
    assert result_name("trees", changed) == name


@pytest.mark.parametrize("letter", ["a", "ü", "木"])
def test_a_long_name_is_cut_and_still_tells_options_apart(tmp_path, letter):
    names = {result_name(letter * 90, {"widths": [*range(100), last]}) for last in (1, 2)}
    assert len(names) == 2
    for name in names:
        (tmp_path / f"{name}.zarr.zip").mkdir()
        assert name.startswith(f"dynascope-{letter}")


def test_a_page_and_a_record_have_one_name(tree, tmp_path, capsys):
    written = write_results(tree, tmp_path / "a" / "b", "dynascope-x=0.5")
    assert sorted(path.name for path in written.parent.iterdir()) == [
        "dynascope-x=0.5.html",
        "dynascope-x=0.5.zarr.zip",
    ]
    assert store.load(written).verdict.outcome == "agree"
    assert "</html>" in page_of(written).read_text("utf-8")
    print_paths(written)
    assert capsys.readouterr().out.splitlines()[-1] == f"Page: {page_of(written)}"


@pytest.mark.parametrize("ending", ["zarr.zip", "html"])
@pytest.mark.parametrize("folder", [True, False])
def test_what_is_in_the_way_stays_and_the_results_get_another_name(tree, tmp_path, monkeypatch, ending, folder):
    monkeypatch.setattr("dynascope.report.write_page", lambda _, path: path.write_text("page"))
    mine = tmp_path / f"x.{ending}"
    mine.mkdir() if folder else mine.write_text("mine")
    assert write_results(tree, tmp_path, "x") == tmp_path / "x-run-2.zarr.zip"
    assert write_results(tree, tmp_path, "x") == tmp_path / "x-run-3.zarr.zip"
    assert list(mine.iterdir()) == [] if folder else mine.read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 5


def test_of_two_runs_at_the_same_time_each_has_its_own_name(tree, tmp_path, monkeypatch):
    inner = []

    def write(_, path):
        if not inner:
            inner.append(None)
            inner[0] = write_results(tree, tmp_path, "x")
        path.write_text("page")

    monkeypatch.setattr("dynascope.report.write_page", write)
    assert write_results(tree, tmp_path, "x") == tmp_path / "x.zarr.zip"
    assert inner == [tmp_path / "x-run-2.zarr.zip"]


def test_a_page_that_cannot_be_written_leaves_no_empty_one(tree, tmp_path, monkeypatch):
    def refuse(*_):
        raise InputError("it cannot be drawn", argument="tree", remedy="draw another")

    monkeypatch.setattr("dynascope.report.write_page", refuse)
    with pytest.raises(InputError, match="it cannot be drawn"):
        write_results(tree, tmp_path, "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr.zip"]


@pytest.mark.parametrize(("number", "reason"), [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only file system")])
def test_a_place_that_takes_nothing_is_named_with_the_reason(tree, tmp_path, monkeypatch, number, reason):
    def refuse(*_):
        raise OSError(number, os.strerror(number), "/somewhere")

    monkeypatch.setattr("dynascope.results.save", refuse)
    for write in (lambda: write_results(tree, tmp_path, "x"), lambda: replace_results(tree, tmp_path / "x.zarr.zip")):
        with pytest.raises(InputError, match=f"{tmp_path} .*{reason}.*--out") as refused:
            write()
        assert refused.value.argument == "out"


@pytest.mark.parametrize("browser", [True, False])
def test_the_page_is_opened_and_a_missing_browser_is_told(tmp_path, monkeypatch, capsys, browser):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or browser)
    open_page(tmp_path / "x=1.zarr.zip")
    open_page(tmp_path / "y.html")
    assert opened == [(tmp_path / "x=1.html").as_uri(), (tmp_path / "y.html").as_uri()]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("found no browser") == (0 if browser else 2)
