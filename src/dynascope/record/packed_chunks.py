"""How much a compressed chunk of an array holds, before it is unpacked."""

from __future__ import annotations

import bz2
import functools
import lzma
import zlib
from pathlib import Path

import zarr

from dynascope.arguments import require

__all__ = ["require_sizes"]

_STREAMS = {
    "bz2": bz2.BZ2Decompressor,
    "gzip": functools.partial(zlib.decompressobj, 16 + zlib.MAX_WBITS),
    "lzma": lzma.LZMADecompressor,
    "zlib": zlib.decompressobj,
}
_SAID = {"blosc": slice(4, 8), "lz4": slice(0, 4)}  # where these write the size
_HEAD = 18  # bytes, of which the longest head of a frame of Zstandard has as many


def require_sizes(name: str, array: zarr.Array, folder: Path) -> None:
    """Raise `InputError` if a chunk of an array would unpack to more than a chunk of it.

    Args:
        name: Of the array.
        array: It.
        folder: Where it is.
    """
    most = array.dtype.itemsize
    for length in array.chunks:
        most *= length
    codecs = [getattr(codec, "codec_id", "") for codec in array.compressors]
    for file in folder.rglob("*"):
        if codecs and file.is_file() and not file.name.startswith(".z"):
            require(
                _unpacked(codecs[0], file, most) <= most,
                f"a chunk of the array {name!r} takes more than the {most} bytes of one when it is unpacked",
                argument="path",
                value=str(file),
                remedy="make the record again",
            )


def _unpacked(codec: str, file: Path, most: int) -> float:
    """Bytes that a file says that it unpacks to, or more than most of them."""
    if codec in _STREAMS:
        stream = _STREAMS[codec]()
        size = len(stream.decompress(file.read_bytes(), most + 1))
        return most + 1 if stream.unused_data else size  # which is unpacked too
    with file.open("rb") as opened:
        data = opened.read(_HEAD)
    if codec in _SAID:
        return int.from_bytes(data[_SAID[codec]], "little")
    # Zstandard, RFC 8878, 3.1.1.1: where its first frame says no size, all of it would be unpacked to find out.
    flag, alone = data[4] >> 6, data[4] >> 5 & 1
    length = (alone, 2, 4, 8)[flag]
    start = 6 - alone + (0, 1, 2, 4)[data[4] & 3]
    said = int.from_bytes(data[start : start + length], "little") + (256 if length == 2 else 0)
    return said if length else most + 1
