from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZipFile

import numcodecs
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from zip_members import read_members, write_members

from dynascope.errors import InputError
from dynascope.results import GrowingRecord, Observation, make_record
from dynascope.results.store import load, save
from dynascope.results.tree import to_tree

NAME = "study.zarr.zip"


def study(level: float = 0.5) -> xr.DataTree:
    observed = make_record(
        {"loss": (["time"], [1.0, np.nan, np.inf]), "mode_strength": (["time", "mode"], np.zeros((3, 2)))},
        {"time": [0.0, 1.0, 2.0], "mode": [1, 2]},
    )
    predicted = make_record(
        {
            "jump_time": (["jump"], [1.0, np.inf]),
            "loss_after": (["jump"], [level, 0.0]),
            "slow": (["jump"], [False, True]),
            "learned": (["jump"], ["rank 1: é ∑ <b>", ""]),
        },
        {"jump": [1, 2]},
        attributes={
            "scale": 1e-300,
            "initial_loss": np.inf,
            "degree": 2,
            "undefined": np.nan,
            "ceiling": -np.inf,
            "warnings": ["a", "b"],
        },
    )
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs={"title": "a study ü"}),
            "observed": observed,
            "predicted": predicted,
        }
    )


def kinds(tree: xr.DataTree) -> dict[str, str]:
    return {
        f"{node.path}/{name}": values.dtype.kind for node in tree.subtree for name, values in node.variables.items()
    }


def test_a_tree_comes_back_identical_and_without_a_warning(tmp_path):
    tree = study()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = save(tree, tmp_path / NAME)
        loaded = load(path)
    assert path == tmp_path / NAME
    assert to_tree(loaded).identical(tree)
    assert kinds(to_tree(loaded)) == kinds(tree)
    assert os.listdir(tmp_path) == [NAME]


def test_attributes_keep_their_type(tmp_path):
    attributes = load(save(study(), tmp_path / NAME)).predicted.attrs
    assert isinstance(attributes["degree"], int)
    assert attributes["scale"] == 1e-300
    assert attributes["initial_loss"] == np.inf
    assert np.isnan(attributes["undefined"])
    assert attributes["warnings"] == ["a", "b"]


def test_groups_come_back_in_the_order_of_the_study(tmp_path):
    loaded = load(save(study(), tmp_path / NAME))
    assert list(to_tree(loaded).children) == ["predicted", "observed"]


def test_a_record_that_was_saved_alone_is_the_root(tmp_path):
    record = study()["predicted"].to_dataset()
    with xr.open_datatree(zarr.storage.ZipStore(save(record, tmp_path / NAME), mode="r"), engine="zarr") as stored:
        assert {*stored.to_dataset().data_vars} == {*record.data_vars}
    assert load(tmp_path / NAME).sides["observed"].identical(record)


def test_what_was_loaded_can_be_saved_again(tmp_path):
    once = load(save(study(), tmp_path / NAME))
    assert to_tree(load(save(once, tmp_path / NAME))).identical(study())


def test_equal_records_give_equal_files(tmp_path):
    assert save(study(), tmp_path / "a.zip").read_bytes() == save(study(), tmp_path / "b.zip").read_bytes()


def test_plain_xarray_opens_a_record_without_a_warning(tmp_path):
    path = save(study(), tmp_path / NAME)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xr.open_datatree(zarr.storage.ZipStore(path, mode="r"), engine="zarr") as opened:
            assert opened.attrs.pop("format_version") == 2
            assert opened.load().identical(study())


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), max_size=4),
    numbers=st.lists(st.floats(), max_size=4),
    flags=st.lists(st.booleans(), max_size=4),
)
def test_any_values_come_back_identical(tmp_path, texts, numbers, flags):
    record = make_record(
        {
            "learned": (["jump"], np.array(texts, dtype=np.str_)),
            "quality": (["mode"], np.array(numbers, dtype=float)),
            "slow": (["neuron"], np.array(flags, dtype=bool)),
        },
        {"jump": np.arange(len(texts)), "mode": np.arange(len(numbers)), "neuron": np.arange(len(flags))},
    )
    loaded = load(save(record, tmp_path / NAME))
    assert loaded.observed.identical(record)


def test_saving_replaces_an_older_record(tmp_path):
    save(study(level=0.5), tmp_path / NAME)
    save(study(level=0.25), tmp_path / NAME)
    assert load(tmp_path / NAME).predicted["loss_after"].values[0] == 0.25
    assert os.listdir(tmp_path) == [NAME]


def test_a_failed_write_keeps_the_older_record_and_leaves_nothing_behind(tmp_path, monkeypatch):
    save(study(), tmp_path / NAME)

    def fail(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(ZipFile, "writestr", fail)
    with pytest.raises(OSError, match="no space"):
        save(study(level=0.25), tmp_path / NAME)
    assert to_tree(load(tmp_path / NAME)).identical(study())
    assert os.listdir(tmp_path) == [NAME]


def test_a_link_stays_a_link(tmp_path):
    save(study(), tmp_path / NAME)
    link = tmp_path / "latest.zarr.zip"
    link.symlink_to(NAME)
    save(study(level=0.25), link)
    assert link.is_symlink()
    assert load(tmp_path / NAME).predicted["loss_after"].values[0] == 0.25


def make_file(path: Path) -> None:
    path.write_text("precious")


def make_folder(path: Path) -> None:
    path.mkdir()
    (path / "precious").touch()


def make_other_store(path: Path) -> None:
    xr.Dataset({"precious": ("x", [1.0])}).to_zarr(path, zarr_format=2, consolidated=False)


@pytest.mark.parametrize("make", [make_file, make_folder, make_other_store])
def test_what_is_not_a_record_is_never_overwritten(tmp_path, make):
    make(tmp_path / NAME)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="is not a record") as caught:
        save(study(), tmp_path / NAME)
    assert caught.value.argument == "path"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("make", [make_file, make_folder])
def test_loading_what_is_not_a_record_says_so(tmp_path, make):
    make(tmp_path / "other")
    with pytest.raises(InputError, match="is not a record"):
        load(tmp_path / "other")


def test_loading_a_missing_path_says_so(tmp_path):
    with pytest.raises(InputError, match="does not exist") as caught:
        load(tmp_path / NAME)
    assert caught.value.remedy


def test_a_missing_folder_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        save(study(), tmp_path / "missing" / NAME)


def test_a_name_that_is_not_of_a_zip_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"does not end in '\.zip'"):
        save(study(), tmp_path / "study.zarr")


def folder_of_version_1(path: Path) -> Path:
    study().to_zarr(path, zarr_format=2, consolidated=False)
    return path


def archive_of_version_1(path: Path) -> Path:
    members: dict[str, Any] = {}
    study().to_zarr(zarr.storage.MemoryStore(members), zarr_format=2, consolidated=False)
    return write_members(path, {name: content.to_bytes() for name, content in members.items()})


def archive_of_version_3(path: Path) -> Path:
    members = read_members(save(study(), path))
    return write_members(path, members | {".zattrs": members[".zattrs"].replace(b'n": 2', b'n": 3')})


@pytest.mark.parametrize(
    ("make", "version"), [(folder_of_version_1, 1), (archive_of_version_1, 1), (archive_of_version_3, 3)]
)
def test_a_record_of_another_format_version_is_refused_with_both_versions(tmp_path, make, version):
    with pytest.raises(InputError, match=f"format version {version}, .* format version 2: create the record again"):
        load(make(tmp_path / NAME))


def test_an_archive_of_an_older_version_is_replaced(tmp_path):
    assert to_tree(load(save(study(), archive_of_version_1(tmp_path / NAME)))).identical(study())


def test_a_growing_record_is_loaded_up_to_its_last_written_row_and_not_changed(tmp_path):
    variables = {"step": (["step"], int), "loss": (["step"], float)}
    record = GrowingRecord.create(tmp_path / "run.zarr", variables, axis="step", seconds=1000)
    record.append({"step": [0, 10], "loss": [1.0, 0.5]})
    record.flush()
    record.append({"step": 20, "loss": 0.25})
    (tmp_path / "run.zarr" / "notes.txt").write_text("another file")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = load(tmp_path / "run.zarr")
    assert isinstance(found, Observation)
    assert found["loss"].to_series().to_dict() == {0: 1.0, 10: 0.5}
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(
    "tree", [xr.DataTree(), xr.Dataset(), xr.Dataset({"loss": ("time", [1.0, 2.0])}, attrs={"convention": ""})]
)
def test_what_is_not_made_of_records_is_not_saved(tmp_path, tree):
    with pytest.raises(InputError):
        save(tree, tmp_path / NAME)
    assert not os.listdir(tmp_path)


@pytest.mark.usefixtures("unchecked_types")
def test_a_dictionary_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="the record has type dict"):
        save({"loss": [1.0]}, tmp_path / NAME)  # type: ignore[arg-type] - the wrong type is what is tested


def replaced(tmp_path: Path, **changes: Any) -> Path:
    """A saved study of which members were changed by functions of their content."""
    path = save(study(), tmp_path / NAME)
    members = read_members(path)
    return write_members(path, members | {name: change(members[name]) for name, change in changes.items()})


def described(**changes: Any) -> Any:
    """A change of the metadata of an array."""
    return lambda content: json.dumps({**json.loads(content), **changes}).encode()


def test_a_missing_chunk_is_damage_and_not_a_nan(tmp_path):
    with pytest.raises(InputError, match="lacks 1 of its 1 chunks"):
        load(replaced(tmp_path, **{"observed/loss/0": lambda _: None}))


@pytest.mark.parametrize("part", ["observed/loss/0", "observed/loss/.zarray", "observed/.zattrs", ".zattrs"])
def test_a_truncated_member_is_damage(tmp_path, part):
    with pytest.raises(InputError, match="is damaged"):
        load(replaced(tmp_path, **{part: lambda content: content[:9]}))


def test_a_truncated_file_is_no_record(tmp_path):
    path = save(study(), tmp_path / NAME)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="is not a record"):
        load(path)


def test_a_stored_record_that_breaks_the_schema_is_refused(tmp_path):
    with pytest.raises(InputError, match="'version' is missing"):
        load(replaced(tmp_path, **{"observed/.zattrs": lambda content: content.replace(b"version", b"vision")}))


@pytest.mark.parametrize("slot", ["filter", "compressor"])
def test_a_record_that_would_run_code_when_decoded_is_refused(tmp_path, monkeypatch, slot):
    # Recent releases of numcodecs have a lock of their own; older ones, which are allowed, have not.
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    text, pickle = {"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}
    attack: dict[str, Any] = {"dtype": "|O", "filters": [text, pickle], "compressor": None, "fill_value": None}
    if slot == "compressor":
        attack |= {"filters": [text], "compressor": pickle}
    # The opcodes that unpickle to a call of os.mkdir(trace).
    trace = tmp_path / "code_was_run"
    code = f"cos\nmkdir\n(V{trace}\ntR.".encode()
    path = replaced(tmp_path, **{"observed/time/.zarray": described(**attack), "observed/time/0": lambda _: code})
    with pytest.raises(InputError, match="other than plain decompression"):
        load(path)
    assert not trace.exists()


@pytest.mark.parametrize("codec", ["blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"])
def test_a_chunk_is_read_but_not_one_that_unpacks_to_more_than_it_says(tmp_path, codec):
    before = study()["observed/loss"].values
    packed: Any = numcodecs.get_codec({"id": codec})
    description = described(compressor=packed.get_config())

    def with_chunk(values: np.ndarray) -> Path:
        chunk = bytes(packed.encode(values))
        return replaced(tmp_path, **{"observed/loss/.zarray": description, "observed/loss/0": lambda _: chunk})

    assert np.array_equal(load(with_chunk(before)).observed["loss"].values, before, equal_nan=True)
    with pytest.raises(InputError, match="unpacks to more than"):
        load(with_chunk(np.zeros(10**6)))


def test_an_archive_without_arrays_says_so(tmp_path):
    path = write_members(tmp_path / "a.zip", {".zgroup": b'{"zarr_format": 2}', ".zattrs": b'{"convention": ""}'})
    with pytest.raises(InputError, match=r"'a\.zip' contains no array"):
        load(path)


def test_a_compression_that_unpacks_without_bound_is_refused(tmp_path):
    path = save(study(), tmp_path / NAME)
    with ZipFile(path, "a", ZIP_BZIP2) as archive:
        archive.writestr("observed/loss/1", bytes(10**6))
    with pytest.raises(InputError, match="a method other than deflate"):
        load(path)


def test_chunks_without_number_are_not_looked_for(tmp_path):
    with pytest.raises(InputError, match="lacks 99999"):
        load(replaced(tmp_path, **{"observed/loss/.zarray": described(shape=[10**8], chunks=[1])}))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("endless", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_not_waited_for(tmp_path, endless):
    endless(tmp_path / NAME)
    with pytest.raises(InputError, match="is not a record"):
        load(tmp_path / NAME)


def test_a_link_in_a_circle_is_no_record_and_is_not_overwritten(tmp_path):
    path = tmp_path / NAME
    path.symlink_to(path)
    with pytest.raises(InputError, match="does not exist"):
        load(path)
    with pytest.raises(InputError, match="is not a record"):
        save(study(), path)
