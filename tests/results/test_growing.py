from __future__ import annotations

import json
import os
import warnings
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

from dynascope.errors import InputError
from dynascope.results import GrowingRecord, validate_record

STEPS = {"step": (["step"], int), "loss": (["step"], float), "strength": (["mode", "step"], "float32")}
MODES = {"mode": ["a", "b", "c"]}
SWEEP = {"loss": (["cell", "step"], float), "status": (["cell"], "int8"), "word": (["cell"], "U5")}
CELLS = {"cell": np.arange(4), "scale": ("cell", [1.0, 0.1, 0.01, 0.001])}


def made(path: os.PathLike[str], **options: Any) -> GrowingRecord:
    return GrowingRecord.create(path, STEPS, axis="step", coords=MODES, **options)


def rows(start: int, stop: int) -> dict[str, np.ndarray]:
    steps = np.arange(start, stop)
    return {"step": steps, "loss": 1 / (1 + steps), "strength": np.sin(steps + np.arange(3)[:, None])}


def row(step: int) -> dict[str, Any]:
    return {name: values[..., 0] for name, values in rows(step, step + 1).items()}


def plain(path: os.PathLike[str]) -> xr.Dataset:
    """What plain xarray reads of a record, as the documentation says."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xr.open_zarr(path) as first, xr.open_zarr(path) as record:
            return record.isel(step=slice(int(first["written"]))).load()


def same(record: xr.Dataset, stop: int) -> bool:
    expected = rows(0, stop)
    return all(np.array_equal(record[name], expected[name].astype(record[name].dtype)) for name in expected)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.zarr"


def test_rows_and_blocks_come_back_through_several_doublings(path):
    with made(path) as record:
        for step in range(100):
            record.append(row(step))
        record.append(rows(100, 40_000))
        record.append(row(40_000))
    found = record.read()
    assert found.sizes == {"step": 40_001, "mode": 3}
    assert same(found, 40_001)
    assert same(plain(path), 40_001)
    assert found["mode"].values.tolist() == ["a", "b", "c"]
    assert found["loss"].attrs == {"long_name": "loss", "units": "1"} | {**found["loss"].attrs}
    validate_record(found)


def test_types_names_and_attributes_are_kept(path):
    variables = {
        "step": (["step"], int),
        "count": (["step"], "uint8"),
        "slow": (["step"], bool),
        "learned": (["step"], "U7"),
    }
    attrs = {"title": "a run", "parameters": {"seeds": [0, 1]}, "undefined": np.nan}
    record = GrowingRecord.create(path, variables, axis="step", attrs=attrs, names={"count": ("how many", "mV")})
    record.append({"step": 0, "count": 0, "slow": True, "learned": "é ∑"})
    record.append({"step": [1, 2], "count": [255, 3], "slow": [False, True], "learned": ["", "1234567"]})
    found = record.read()
    assert {name: values.dtype for name, values in found.variables.items()} == {
        name: np.dtype(kind) for name, (_, kind) in variables.items()
    }
    assert found["count"].values.tolist() == [0, 255, 3]
    assert found["slow"].values.tolist() == [True, False, True]
    assert found["learned"].values.tolist() == ["é ∑", "", "1234567"]
    assert found["count"].attrs == {"long_name": "how many", "units": "mV"}
    assert found.attrs["parameters"] == {"seeds": [0, 1]}
    assert np.isnan(found.attrs["undefined"])
    assert found.drop_attrs().equals(plain(path).drop_vars("written").drop_attrs())


def test_what_is_not_flushed_is_not_counted_and_is_lost_with_the_writer(path):
    record = made(path, seconds=1e9)
    record.append(rows(0, 10))
    record.flush()
    record.append(row(10))
    assert plain(path).sizes["step"] == 10
    assert GrowingRecord.open(path).read().sizes["step"] == 10


def test_rows_are_written_when_their_time_has_passed(path):
    record = made(path, seconds=0.0)
    for step in range(5):
        record.append(row(step))
        assert same(plain(path), step + 1)


def test_a_record_is_continued_after_its_last_counted_row(path):
    for start in range(0, 9000, 1500):
        with GrowingRecord.open(path) if start else made(path) as record:
            assert record.written == start
            record.append(rows(start, start + 1500))
    assert same(plain(path), 9000)


@pytest.mark.parametrize("stage", range(5))
def test_a_kill_while_the_record_is_doubled_changes_nothing(path, monkeypatch, stage):
    record = made(path)
    record.append(rows(0, 8192))
    resize, calls = zarr.Array.resize, []

    def killed(self, shape):
        calls.append(None)
        if len(calls) > stage:
            raise KeyboardInterrupt
        resize(self, shape)

    def killed_too(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(zarr.Array, "resize", killed)
        patched.setattr(zarr, "consolidate_metadata", killed_too)
        with pytest.raises(KeyboardInterrupt):
            record.append(rows(8192, 20_000))
    assert same(plain(path), 8192)
    with GrowingRecord.open(path) as continued:
        continued.append(rows(8192, 50_000))
    assert same(plain(path), 50_000)


def test_cells_of_a_sweep_are_written_in_any_order_each_with_its_status_last(path):
    record = GrowingRecord.create(path, SWEEP, axis="step", coords=CELLS, chunks={"cell": 1})
    curves = np.random.default_rng(0).random((4, 9000))
    for cell in (2, 0, 3):
        record.write_region({"loss": curves[cell], "word": "cell", "status": 1}, {"cell": cell, "step": slice(0, 9000)})
    record.write_region({"loss": curves[[2, 0], :10] + 1}, {"cell": [2, 0], "step": slice(0, 10)})
    curves[[2, 0], :10] += 1
    for found in (record.read(), plain(path), GrowingRecord.open(path).read()):
        assert found["status"].values.tolist() == [1, 0, 1, 1]
        assert found["word"].values.tolist() == ["cell", "", "cell", "cell"]
        assert np.array_equal(found["loss"][[0, 2, 3]], curves[[0, 2, 3]])
        assert found["loss"][1].isnull().all()
        assert found["scale"].values.tolist() == CELLS["scale"][1]


def test_values_that_a_killed_writer_left_uncounted_do_not_come_back(path, monkeypatch):
    record = GrowingRecord.create(path, SWEEP, axis="step", coords=CELLS)
    with monkeypatch.context() as patched:
        patched.setattr(GrowingRecord, "_set_written", lambda *_: None)
        record.write_region({"loss": np.ones((4, 100))}, {"step": slice(0, 100)})
    continued = GrowingRecord.open(path)
    assert continued.read().sizes["step"] == 0
    continued.write_region({"loss": np.zeros(50)}, {"cell": 1, "step": slice(0, 50)})
    found = continued.read()["loss"]
    assert (found[1] == 0).all()
    assert found[[0, 2, 3]].isnull().all()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"step": 0, "loss": 1.0}, "but the record has"),
        (row(0) | {"other": 1.0}, "but the record has"),
        (row(0) | {"loss": [1.0, 2.0]}, "has shape"),
        (row(0) | {"strength": np.ones(2)}, "has shape"),
        (rows(0, 3) | {"loss": np.ones(2)}, r"different numbers of rows \(2, 3\)"),
        (row(0) | {"step": 0.5}, "type int64 of 'step' cannot represent this float64"),
        (row(0) | {"loss": "one"}, "cannot represent"),
        (row(0) | {"loss": 1j}, "cannot represent"),
    ],
)
def test_what_is_no_row_is_refused_and_leaves_nothing(path, values, reason):
    record = made(path)
    record.append(row(0))
    with pytest.raises(InputError, match=reason):
        record.append(values)
    record.append(row(1))
    assert same(record.read(), 2)


@pytest.mark.parametrize(("kind", "value"), [("uint8", 256), ("int8", -129), ("U3", "four"), (bool, 2), (int, "1")])
def test_a_value_that_its_type_cannot_hold_is_refused(path, kind, value):
    record = GrowingRecord.create(path, {"quantity": (["step"], kind)}, axis="step")
    with pytest.raises(InputError, match="cannot represent"):
        record.append({"quantity": value})


@pytest.mark.parametrize(
    ("values", "places", "reason"),
    [
        ({"other": 1.0}, {}, "which is not a variable"),
        ({"loss": 1.0}, {"cell": 0, "mode": 1}, "which is not a dimension"),
        ({"loss": 1.0}, {"cell": 4, "step": 0}, "outside the dimension 'cell' of length 4"),
        ({"loss": [1.0, 2.0]}, {"cell": 0, "step": 0}, "has shape"),
        ({"loss": 1.0}, {"cell": 0, "step": slice(0, 2)}, "has shape"),
        ({"status": 300}, {"cell": 0}, "cannot represent"),
    ],
)
def test_what_is_no_region_is_refused_and_leaves_nothing(path, values, places, reason):
    record = GrowingRecord.create(path, SWEEP, axis="step", coords=CELLS)
    with pytest.raises(InputError, match=reason):
        record.write_region({"status": [1] * 4, **values} if "cell" not in places else values, places)
    assert record.written == 0
    assert record.read()["status"].values.tolist() == [0] * 4


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"loss": (["cell"], float)}, "no variable has the growing dimension"),
        ({"loss": (["step", "mode"], float)}, "'mode' of 'loss' has no labels"),
        ({"written": (["step"], float)}, "'written' is already used"),
        ({"cell": (["step"], float)}, "'cell' is already used"),
        ({"loss": (["step"], object)}, "the type of 'loss' is object"),
        ({"loss": (["step"], str)}, "the type of 'loss' is <U0"),
        ({"loss": (["step", "step"], float)}, "repeats a dimension"),
        ({"loss": (["step"], "floaty")}, "'loss' is declared as"),
    ],
)
def test_variables_that_cannot_grow_are_refused_before_anything_is_made(tmp_path, variables, reason):
    with pytest.raises(InputError, match=reason):
        GrowingRecord.create(tmp_path / "a.zarr", variables, axis="step", coords=CELLS)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("options", [{"seconds": -1.0}, {"chunks": {"step": 4}}, {"chunks": {"cells": 1}}])
def test_options_that_a_record_cannot_keep_are_named(tmp_path, options):
    with pytest.raises(InputError) as caught:
        GrowingRecord.create(tmp_path / "a.zarr", STEPS, axis="step", coords=MODES, **options)
    assert caught.value.argument in options
    assert os.listdir(tmp_path) == []


def test_coordinates_that_do_not_fit_together_are_refused(path):
    with pytest.raises(InputError, match="the coordinates are inconsistent"):
        GrowingRecord.create(path, STEPS, axis="step", coords=MODES | {"scale": ("mode", [1.0])})


def test_a_record_is_not_made_in_place_of_another(path):
    made(path)
    with pytest.raises(InputError, match="exists"):
        made(path)
    with pytest.raises(InputError, match="does not exist"):
        made(path / "there" / "run.zarr")


def test_what_is_no_running_record_is_not_opened(tmp_path):
    with pytest.raises(InputError, match="is not a growing record"):
        GrowingRecord.open(tmp_path / "missing.zarr")
    with pytest.raises(InputError, match="is not a growing record"):
        GrowingRecord.open(tmp_path)


def changed(path: os.PathLike[str], name: str, **changes: Any) -> None:
    """Change the metadata of a record, and what is consolidated of it."""
    for file, metadata in ((f"{path}/{name}", ()), (f"{path}/.zmetadata", ("metadata", name))):
        with open(file) as opened:
            whole = json.load(opened)
        part = whole
        for key in metadata:
            part = part[key]
        part.update(changes)
        with open(file, "w") as opened:
            json.dump(whole, opened)


def test_a_record_of_another_version_or_with_a_decoder_that_runs_code_is_not_opened(path):
    made(path).append(row(0))
    filters = [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}]
    changed(path, "loss/.zarray", dtype="|O", filters=filters, fill_value=None)
    with pytest.raises(InputError, match="other than plain decompression"):
        GrowingRecord.open(path)
    changed(path, "loss/.zarray", dtype="<f8", filters=None, chunks=[10**15])
    with pytest.raises(InputError, match="takes 8 PB when unpacked"):
        GrowingRecord.open(path)
    changed(path, ".zattrs", format_version=3)
    with pytest.raises(InputError, match=r"format version 3, .* format version 2"):
        GrowingRecord.open(path)
