from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numcodecs
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.results import make_record, store, whole_files
from dynascope.results.store import export, load, save

WRITERS = [(save, "study.zarr"), (export, "study.zip")]


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
        attributes={"scale": 1e-300, "initial_loss": np.inf, "degree": 2, "undefined": np.nan, "warnings": ["a", "b"]},
    )
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs={"title": "a study", "ceiling": -np.inf}),
            "setup": xr.Dataset(attrs={"task": "ü"}),
            "observed": observed,
            "predicted": predicted,
        }
    )


def kinds(tree: xr.DataTree) -> dict[str, str]:
    return {
        f"{node.path}/{name}": values.dtype.kind for node in tree.subtree for name, values in node.variables.items()
    }


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_a_tree_comes_back_identical_and_without_a_warning(tmp_path, write, name):
    tree = study()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = write(tree, tmp_path / name)
        loaded = load(path)
    assert path == tmp_path / name
    assert loaded.identical(tree)
    assert kinds(loaded) == kinds(tree)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_attributes_keep_their_type(tmp_path, write, name):
    attributes = load(write(study(), tmp_path / name))["predicted"].attrs
    assert isinstance(attributes["degree"], int)
    assert attributes["scale"] == 1e-300
    assert attributes["initial_loss"] == np.inf
    assert np.isnan(attributes["undefined"])
    assert attributes["warnings"] == ["a", "b"]


def test_groups_come_back_in_the_order_of_the_study(tmp_path):
    loaded = load(save(study(), tmp_path / "study.zarr"))
    assert list(loaded.children) == ["setup", "observed", "predicted"]


def test_a_record_that_was_saved_alone_is_the_root(tmp_path):
    record = study()["predicted"].to_dataset()
    assert load(save(record, tmp_path / "alone.zarr")).to_dataset().identical(record)


def test_what_was_loaded_can_be_saved_again(tmp_path):
    once = load(save(study(), tmp_path / "study.zarr"))
    assert load(save(once, tmp_path / "study.zarr")).identical(study())


def test_equal_records_export_to_equal_files(tmp_path):
    assert export(study(), tmp_path / "a.zip").read_bytes() == export(study(), tmp_path / "b.zip").read_bytes()


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
    loaded = load(save(record, tmp_path / "any.zarr"))
    assert loaded.to_dataset().identical(record)
    assert kinds(loaded) == kinds(xr.DataTree(record))


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_saving_replaces_an_older_record(tmp_path, write, name):
    write(study(level=0.5), tmp_path / name)
    write(study(level=0.25), tmp_path / name)
    assert load(tmp_path / name)["predicted/loss_after"].values[0] == 0.25
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_a_failed_write_keeps_the_older_record_and_leaves_nothing_behind(tmp_path, monkeypatch, write, name):
    write(study(), tmp_path / name)

    def fail(self, *_):
        if isinstance(self, Path):
            self.touch()
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    monkeypatch.setattr(ZipFile, "writestr", fail)
    with pytest.raises(OSError, match="no space"):
        write(study(level=0.25), tmp_path / name)
    assert load(tmp_path / name).identical(study())
    assert os.listdir(tmp_path) == [name]


@pytest.fixture(params=[True, False], ids=["exchange", "rename"])
def _exchange(request, monkeypatch):
    """File systems that can exchange two names, and those that cannot."""
    if not request.param:
        monkeypatch.setattr(whole_files, "exchanged", lambda *_: False)


def test_a_failed_rename_puts_the_older_record_back(tmp_path, monkeypatch):
    monkeypatch.setattr(whole_files, "exchanged", lambda *_: False)
    path = save(study(), tmp_path / "study.zarr")
    rename = os.rename

    def fail(source, destination):
        if Path(destination).name == "study.zarr" and "previous" not in str(source):
            raise OSError("stopped")
        rename(source, destination)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="stopped"):
        save(study(level=0.25), path)
    assert load(path).identical(study())
    assert os.listdir(tmp_path) == ["study.zarr"]


def test_a_kill_between_the_two_renames_loses_nothing(tmp_path, monkeypatch):
    path = save(study(), tmp_path / "study.zarr")
    os.rename(path, tmp_path / ".study.zarr.previous")
    assert load(path).identical(study())
    save(study(level=0.25), path)
    assert load(path)["predicted/loss_after"].values[0] == 0.25
    assert os.listdir(tmp_path) == ["study.zarr"]


@pytest.mark.parametrize("rest", [[".zgroup", "observed", "predicted"], ["observed", "setup"], []])
@pytest.mark.usefixtures("_exchange")
def test_a_kill_while_the_older_record_is_deleted_is_tidied_up(tmp_path, rest):
    path = save(study(), tmp_path / "study.zarr")
    for name in (".study.zarr.previous", ".study.partial-0123abcd.zarr"):
        older = save(study(level=0.25), tmp_path / name)
        for each in {file.name for file in older.iterdir()} - set(rest):
            whole_files._delete(older / each)
    assert load(path).identical(study())
    save(study(level=0.125), path)
    assert load(path)["predicted/loss_after"].values[0] == 0.125
    assert os.listdir(tmp_path) == ["study.zarr"]


def test_what_only_looks_like_a_leftover_stays(tmp_path):
    names = [".study.partial-0123.zarr", ".study.0123abcd.zarr", ".other.partial-0123abcd.zarr"]
    for name in names:
        (tmp_path / name).mkdir()
    save(study(), tmp_path / "study.zarr")
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "study.zarr"])


@pytest.mark.parametrize("notices", [True, False])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_record_that_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch, notices, times):
    path = save(study(), tmp_path / "study.zarr")
    read = store._read

    def replaced(source):
        monkeypatch.setattr(store, "_read", read)
        older = read(source)
        # A folder may get the number of one that is gone.
        for _ in range(times):
            save(study(level=0.25), path)
        if notices:
            raise OSError("a chunk is gone")
        return older

    monkeypatch.setattr(store, "_read", replaced)
    assert load(path)["predicted/loss_after"].values[0] == 0.25


def test_a_link_stays_a_link(tmp_path):
    save(study(), tmp_path / "study.zarr")
    link = tmp_path / "latest.zarr"
    link.symlink_to("study.zarr")
    save(study(level=0.25), link)
    assert link.is_symlink()
    assert load(tmp_path / "study.zarr")["predicted/loss_after"].values[0] == 0.25


def make_file(path: Path) -> None:
    path.write_text("precious")


def make_folder(path: Path) -> None:
    path.mkdir()
    (path / "precious").touch()


def make_other_store(path: Path) -> None:
    xr.Dataset({"precious": ("x", [1.0])}).to_zarr(path, zarr_format=2, consolidated=False)


@pytest.mark.parametrize("make", [make_file, make_folder, make_other_store])
@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_what_is_not_a_record_is_never_overwritten(tmp_path, make, write, name):
    make(tmp_path / name)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="is not a record") as caught:
        write(study(), tmp_path / name)
    assert caught.value.argument == "path"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("make", [make_file, make_folder, make_other_store])
def test_loading_what_is_not_a_record_says_so(tmp_path, make):
    make(tmp_path / "other")
    with pytest.raises(InputError, match="is not a record"):
        load(tmp_path / "other")


def test_loading_a_missing_path_says_so(tmp_path):
    with pytest.raises(InputError, match="does not exist") as caught:
        load(tmp_path / "missing.zarr")
    assert caught.value.remedy


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_a_missing_folder_is_bad_input(tmp_path, write, name):
    with pytest.raises(InputError, match="does not exist"):
        write(study(), tmp_path / "missing" / name)


def test_an_export_is_a_zip_file(tmp_path):
    with pytest.raises(InputError, match=r"does not end in '\.zip'"):
        export(study(), tmp_path / "study.nc")


@pytest.mark.parametrize(
    "tree", [xr.DataTree(), xr.Dataset(), xr.Dataset({"loss": ("time", [1.0, 2.0])}, attrs={"convention": ""})]
)
def test_what_is_not_made_of_records_is_not_saved(tmp_path, tree):
    with pytest.raises(InputError):
        save(tree, tmp_path / "study.zarr")
    assert not os.listdir(tmp_path)


@pytest.mark.usefixtures("unchecked_types")
def test_a_dictionary_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="the record is a dict"):
        save({"loss": [1.0]}, tmp_path / "study.zarr")  # type: ignore[arg-type] - the wrong type is what is tested


def test_a_missing_chunk_is_damage_and_not_a_nan(tmp_path):
    path = save(study(), tmp_path / "study.zarr")
    (path / "observed" / "loss" / "0").unlink()
    with pytest.raises(InputError, match="lacks 1 of its 1 chunks"):
        load(path)


@pytest.mark.parametrize("part", ["observed/loss/0", "observed/loss/.zarray", "observed/.zattrs"])
def test_a_truncated_file_is_damage(tmp_path, part):
    path = save(study(), tmp_path / "study.zarr")
    (path / part).write_bytes((path / part).read_bytes()[:9])
    with pytest.raises(InputError, match="is damaged"):
        load(path)


def test_a_stored_record_that_breaks_the_schema_is_refused(tmp_path):
    path = save(study(), tmp_path / "study.zarr")
    attributes = path / "observed" / ".zattrs"
    attributes.write_text(attributes.read_text().replace("version", "vision"))
    with pytest.raises(InputError, match="'version' is missing"):
        load(path)


@pytest.mark.parametrize("slot", ["filter", "compressor"])
def test_a_record_that_would_run_code_when_decoded_is_refused(tmp_path, monkeypatch, slot):
    # Recent releases of numcodecs have a lock of their own; older ones, which are allowed, have not.
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    path = save(study(), tmp_path / "study.zarr")
    description = path / "observed" / "time" / ".zarray"
    text, pickle = {"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}
    attack = {"dtype": "|O", "filters": [text, pickle], "compressor": None}
    if slot == "compressor":
        attack = {"dtype": "|O", "filters": [text], "compressor": pickle}
    description.write_text(json.dumps({**json.loads(description.read_text()), "fill_value": None, **attack}))
    # The opcodes that unpickle to a call of os.mkdir(trace).
    trace = tmp_path / "code_was_run"
    (path / "observed" / "time" / "0").write_bytes(f"cos\nmkdir\n(V{trace}\ntR.".encode())
    with pytest.raises(InputError, match="not plain decompression"):
        load(path)
    assert not trace.exists()


@pytest.mark.parametrize("codec", ["blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"])
def test_a_chunk_is_read_but_not_one_that_unpacks_to_more_than_it_says(tmp_path, codec):
    path = save(study(), tmp_path / "study.zarr")
    before, chunk = load(path)["observed/loss"].values, path / "observed" / "loss" / "0"
    packed: Any = numcodecs.get_codec({"id": codec})
    description = chunk.with_name(".zarray")
    description.write_text(json.dumps({**json.loads(description.read_text()), "compressor": packed.get_config()}))
    chunk.write_bytes(bytes(packed.encode(before)))
    assert np.array_equal(load(path)["observed/loss"].values, before, equal_nan=True)
    chunk.write_bytes(bytes(packed.encode(np.zeros(10**6))))
    with pytest.raises(InputError, match="of one when it is unpacked"):
        load(path)


def test_an_archive_without_arrays_says_so(tmp_path):
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(".zgroup", '{"zarr_format": 2}')
        archive.writestr(".zattrs", '{"convention": ""}')
    with pytest.raises(InputError, match=r"'a\.zip' holds no array"):
        load(tmp_path / "a.zip")


def test_chunks_without_number_are_not_looked_for(tmp_path):
    path = save(study(), tmp_path / "study.zarr")
    description = path / "observed" / "loss" / ".zarray"
    description.write_text(json.dumps({**json.loads(description.read_text()), "shape": [10**8], "chunks": [1]}))
    with pytest.raises(InputError, match="lacks 99999"):
        load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("part", ["observed/loss/0", "observed/loss/.zarray", ".zattrs", "observed/.zattrs"])
@pytest.mark.parametrize("endless", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_not_waited_for(tmp_path, part, endless):
    path = save(study(), tmp_path / "study.zarr")
    (path / part).unlink(missing_ok=True)
    endless(path / part)
    with pytest.raises(InputError, match=r"neither a file nor a folder|is not a record"):
        load(path)


def test_a_link_in_a_circle_is_no_record_and_is_not_overwritten(tmp_path):
    path = tmp_path / "study.zarr"
    path.symlink_to(path)
    with pytest.raises(InputError, match="does not exist"):
        load(path)
    with pytest.raises(InputError, match="is not a record"):
        save(study(), path)
