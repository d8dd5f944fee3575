"""Files that no one should give, each made by a function of a folder, which returns the path."""

from __future__ import annotations

import gzip
import io
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from zip_members import read_members, write_members

from dynascope.results import make_record
from dynascope.results.store import save

__all__ = ["HOSTILE", "IMAGES"]

_ROWS = 2 * 10**8  # zeros, of eight bytes each


def _header(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


def _npz(folder: Path, x: bytes, y: bytes = b"") -> Path:
    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", x)
        archive.writestr("y.npy", y or x)
    return folder / "a.npz"


def zip_bomb(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("x.npy", "w", force_zip64=True) as stream:
            stream.write(_header((_ROWS // 8,)))
            for _ in range(_ROWS // 10**6):
                stream.write(bytes(10**6))
        archive.writestr("y.npy", _header((1,)) + bytes(8))
    return folder / "a.npz"


def zip_that_lies_about_its_shape(folder: Path) -> Path:
    return _npz(folder, _header((10**13,)) + bytes(80))


def zip_with_an_endless_header(folder: Path) -> Path:
    return _npz(folder, b"\x93NUMPY\x02\x00" + struct.pack("<I", 10**8) + b" " * 10**8)


def zip_with_a_pickle(folder: Path) -> Path:
    np.savez(folder / "a.npz", x=np.array([{"a": 1}, None]), y=np.ones(2))
    return folder / "a.npz"


def zip_cut_in_two(folder: Path) -> Path:
    path = _npz(folder, _header((100,)) + np.random.default_rng(0).bytes(800))
    path.write_bytes(path.read_bytes()[:400])
    return path


def array_of_nothing_but_holes(folder: Path) -> Path:
    """A file of as many bytes as it says, of which the disk holds none."""
    for name in ("x.npy", "y.npy"):
        with open(folder / name, "wb") as file:
            head = _header((10**11,))
            file.write(head)
            file.truncate(len(head) + 8 * 10**11)
    return folder / "x.npy"


def table_of_one_endless_line(folder: Path) -> Path:
    (folder / "a.csv").write_bytes(b"a," * 3 * 10**6)
    return folder / "a.csv"


def table_of_nul_bytes(folder: Path) -> Path:
    (folder / "a.csv").write_bytes(b"a,y\n1,\x002\n\x00\x00,\n" + bytes(1000))
    return folder / "a.csv"


def table_of_noise(folder: Path) -> Path:
    (folder / "a.csv").write_bytes(np.random.default_rng(0).bytes(10**5))
    return folder / "a.csv"


def table_with_integers_of_400_digits(folder: Path) -> Path:
    (folder / "a.csv").write_text(f"a,y\n1,2\n{'9' * 400},4\n5,1\n")
    return folder / "a.csv"


def table_with_a_number_of_megabytes(folder: Path) -> Path:
    (folder / "a.csv").write_text("x,y\n" + "7" * 5 * 10**6 + ",4\n3,5\n")
    return folder / "a.csv"


def table_with_quotes_that_never_end(folder: Path) -> Path:
    (folder / "a.csv").write_text('a,y\n1,"2\n' + "3,4\n" * 1000)
    return folder / "a.csv"


def columns_of_equal_numbers(folder: Path) -> Path:
    """As many rows as fit into nothing, since equal numbers are written once."""
    table = pa.table({name: pa.array(np.zeros(10**6, np.int8)) for name in ("a", "y")})
    with pq.ParquetWriter(folder / "a.parquet", table.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(table)
    return folder / "a.parquet"


def columns_of_one_long_text(folder: Path) -> Path:
    """A text that is stored once and stands in every row."""
    rows = 10**5
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 10**6]))
    table = pa.table({"a": text, "y": np.arange(rows)})
    pq.write_table(table, folder / "a.parquet", store_schema=False)
    return folder / "a.parquet"


def columns_of_lists_of_one_long_text(folder: Path) -> Path:
    """The same text, in a list in every row."""
    rows = 10**5
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([b"x" * 10**6], pa.binary()))
    lists = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32)), texts)
    pq.write_table(pa.table({"a": lists, "y": np.arange(rows)}), folder / "a.parquet", store_schema=False)
    return folder / "a.parquet"


def columns_of_one_long_key(folder: Path) -> Path:
    """Bytes of a length that is fixed, which are stored once and stand in every row."""
    rows = 2 * 10**4
    key = pa.array([b"x" * 10**5], pa.binary(10**5))
    table = pa.table({"a": pa.chunked_array([key] * rows), "y": np.arange(rows)})
    pq.write_table(table, folder / "a.parquet")
    return folder / "a.parquet"


def columns_cut_in_two(folder: Path) -> Path:
    pd.DataFrame({"a": np.arange(1000.0), "y": np.arange(1000.0)}).to_parquet(folder / "a.parquet")
    data = (folder / "a.parquet").read_bytes()
    (folder / "a.parquet").write_bytes(data[: len(data) // 2])
    return folder / "a.parquet"


def columns_with_a_spoiled_middle(folder: Path) -> Path:
    pd.DataFrame({"a": np.arange(1000.0), "y": np.arange(1000.0)}).to_parquet(folder / "a.parquet")
    data = bytearray((folder / "a.parquet").read_bytes())
    data[200:400] = bytes(200)
    (folder / "a.parquet").write_bytes(data)
    return folder / "a.parquet"


def empty_file(folder: Path) -> Path:
    (folder / "a.csv").touch()
    return folder / "a.csv"


def folder_in_place_of_a_file(folder: Path) -> Path:
    (folder / "a.npz").mkdir()
    return folder / "a.npz"


def pipe_in_place_of_a_file(folder: Path) -> Path:
    os.mkfifo(folder / "a.csv")
    return folder / "a.csv"


def link_to_itself(folder: Path) -> Path:
    (folder / "a.csv").symlink_to(folder / "a.csv")
    return folder / "a.csv"


def endless_device(folder: Path) -> Path:
    (folder / "a.csv").symlink_to("/dev/zero")
    return folder / "a.csv"


def name_that_is_too_long(folder: Path) -> Path:
    return folder / (1000 * "a" + ".csv")


def nested_folders(folder: Path) -> Path:
    return folder.joinpath(*2000 * ["a"], "a.csv")


_ROOT = {".zgroup": b'{"zarr_format": 2}', ".zattrs": b'{"convention": "", "format_version": 2}'}


def record_bomb(folder: Path) -> Path:
    path = write_members(folder / "a.zip", _ROOT)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("loss/0", "w", force_zip64=True) as stream,
    ):
        for _ in range(_ROWS // 10**6):
            stream.write(bytes(10**6))
    return path


def _record(folder: Path, **members: bytes) -> Path:
    """A record with these members in place of its own, or besides."""
    path = save(make_record({"loss": (["time"], np.ones(50))}, {"time": np.arange(50.0)}), folder / "a.zip")
    return write_members(path, read_members(path) | members)


def record_with_a_chunk_beyond_its_array(folder: Path) -> Path:
    return _record(folder, **{"loss/0": bytes(5 * 10**7)})


def record_with_a_chunk_that_is_larger_than_declared(folder: Path) -> Path:
    """A member of 200 MB that the directory of the archive declares to have one byte."""
    path = _record(folder, **{"loss/0": bytes(2 * 10**8)})
    data, size = bytearray(path.read_bytes()), struct.pack("<I", 2 * 10**8)
    while (place := data.find(size)) >= 0:
        data[place : place + 4] = struct.pack("<I", 1)
    path.write_bytes(data)
    return path


def record_with_a_file_twice(folder: Path) -> Path:
    path = _record(folder)
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("loss/0", b"another")
    return path


def record_that_leads_out_of_its_folder(folder: Path) -> Path:
    return _record(folder, **{"../escaped": b"1"})


def record_of_nested_groups(folder: Path) -> Path:
    return _record(folder, **{"a/" * depth + ".zgroup": _ROOT[".zgroup"] for depth in range(1, 2000)})


def record_of_many_files(folder: Path) -> Path:
    return write_members(folder / "a.zip", _ROOT | {f"loss/{number}": b"" for number in range(30_000)})


def record_of_many_groups(folder: Path) -> Path:
    return _record(folder, **{f"{number}/.zgroup": _ROOT[".zgroup"] for number in range(1000)})


def folder_in_place_of_a_record(folder: Path) -> Path:
    (folder / "a.zarr").mkdir()
    return folder / "a.zarr"


def image_bomb(folder: Path) -> Path:
    """A picture of 50 000 × 50 000 pixels, of which a few are there."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = part(b"IHDR", struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0))
    for name in ("cat", "dog"):
        (folder / name).mkdir()
        data = b"\x89PNG\r\n\x1a\n" + head + part(b"IDAT", zlib.compress(bytes(10**4))) + part(b"IEND", b"")
        (folder / name / "1.png").write_bytes(data)
    return folder


def bytes_packed_without_end(folder: Path) -> Path:
    """Digits as they are published, of which there are more than their file says."""
    head = struct.pack(">IIII", 0x0803, 1, 2, 2)
    with gzip.open(folder / "train-images-idx3-ubyte.gz", "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(_ROWS // 10**6):
            file.write(bytes(10**6))
    (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x0801, 1) + b"\0")
    return folder


HOSTILE: list[Callable[[Path], Path]] = [
    zip_bomb,
    zip_that_lies_about_its_shape,
    zip_with_an_endless_header,
    zip_with_a_pickle,
    zip_cut_in_two,
    array_of_nothing_but_holes,
    table_of_one_endless_line,
    table_of_nul_bytes,
    table_of_noise,
    table_with_integers_of_400_digits,
    table_with_a_number_of_megabytes,
    table_with_quotes_that_never_end,
    columns_of_equal_numbers,
    columns_of_one_long_text,
    columns_of_lists_of_one_long_text,
    columns_of_one_long_key,
    columns_cut_in_two,
    columns_with_a_spoiled_middle,
    empty_file,
    folder_in_place_of_a_file,
    pipe_in_place_of_a_file,
    link_to_itself,
    endless_device,
    name_that_is_too_long,
    nested_folders,
    record_bomb,
    record_with_a_chunk_beyond_its_array,
    record_with_a_chunk_that_is_larger_than_declared,
    record_with_a_file_twice,
    record_that_leads_out_of_its_folder,
    record_of_nested_groups,
    record_of_many_files,
    record_of_many_groups,
    folder_in_place_of_a_record,
]
IMAGES: list[Callable[[Path], Path]] = [image_bomb, bytes_packed_without_end]
