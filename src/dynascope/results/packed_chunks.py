"""Checks of the compressed chunks of an array, before zarr reads them all at once."""

from __future__ import annotations

import bz2
import functools
import itertools
import lzma
import math
import zlib
from typing import Any

import zarr

from dynascope.results.archive_members import Members
from dynascope.validation import require

__all__ = ["require_plain_decoder", "require_whole_chunks"]

_COMPRESSORS = {"blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"}
_STREAMS = {
    "bz2": bz2.BZ2Decompressor,
    "gzip": functools.partial(zlib.decompressobj, 16 + zlib.MAX_WBITS),
    "lzma": lzma.LZMADecompressor,
    "zlib": zlib.decompressobj,
}
_SIZE = {"blosc": slice(4, 8), "lz4": slice(0, 4)}  # where the header holds the unpacked size
_GROWTH, _HEAD = 1.02, 1024  # by how much compression enlarges noise, and bytes of headers


def require_plain_decoder(name: str, array: zarr.Array) -> None:
    """Raise `InputError` if an array requires a decoder other than plain decompression.

    For example, zarr supports the decoder pickle, which can execute code.

    Args:
        name: Path of the array.
        array: Metadata of the array.
    """
    codecs = [getattr(codec, "codec_id", None) for codec in array.compressors]
    require(
        not array.filters and len(codecs) < 2 and _COMPRESSORS.issuperset(codecs),
        f"the array {name!r} requires a decoder other than plain decompression",
        argument="path",
        value=name,
        remedy="load only records that dynascope saved",
    )


def require_whole_chunks(name: str, array: zarr.Array, members: Members) -> None:
    """Raise `InputError` unless every chunk of an array exists and unpacks to exactly one chunk.

    zarr reads all chunks concurrently and prints a traceback for each failure after the first. This check therefore
    detects damage chunk by chunk, before zarr reads the array.

    Args:
        name: Path of the array.
        array: Metadata of the array.
        members: The members of the record.

    Raises:
        InputError: The array requires a decoder other than plain decompression; or a chunk is missing, is too large, or
            cannot be unpacked.
    """
    require_plain_decoder(name, array)
    stored = members.chunks[name]
    missing = array.nchunks - len(stored)
    # The metadata may claim any number of chunks; they are checked one by one only if there are enough files.
    if missing <= 0:
        keys = [array.metadata.encode_chunk_key(each) for each in itertools.product(*map(range, array.cdata_shape))]
        missing = sum(key not in stored for key in keys)
    require(
        missing == 0,
        f"the array {name!r} lacks {missing} of its {array.nchunks} chunks",
        argument="path",
        value=name,
        remedy="copy the complete record again",
    )
    whole = math.prod(array.chunks) * array.dtype.itemsize
    for key in keys:
        data = members.content[f"{name}/{key}"]
        fits = len(data) <= (_GROWTH * whole + _HEAD if array.compressors else whole)
        size = _unpacked(array.compressors, data, whole) if fits else math.inf
        require(
            size <= whole,
            f"a chunk of the array {name!r} unpacks to more than {whole} bytes, the size of a chunk",
            argument="path",
            value=f"{name}/{key}",
            remedy="create the record again",
        )
        require(
            size == whole,
            f"a chunk of the array {name!r} contains only {size:.0f} of {whole} bytes",
            argument="path",
            value=f"{name}/{key}",
            remedy="create the record again",
        )


def _unpacked(compressors: Any, data: bytes, whole: int) -> float:
    """Return the number of bytes to which a chunk unpacks; infinity, without unpacking, if it exceeds a whole chunk."""
    if not compressors:
        return len(data)
    codec = compressors[0].codec_id
    if codec in _STREAMS:
        stream = _STREAMS[codec]()
        size = len(stream.decompress(data, whole + 1))
        return math.inf if size > whole or stream.unused_data else size  # zarr would also unpack trailing data
    declared = int.from_bytes(data[_SIZE[codec]], "little") if codec in _SIZE else _of_zstandard(data)
    return len(memoryview(compressors[0].decode(data)).cast("B")) if declared <= whole else math.inf


def _of_zstandard(data: bytes) -> float:
    """Return the unpacked size that the first frame declares (RFC 8878, 3.1.1.1); infinity if it declares none."""
    flag, alone = data[4] >> 6, data[4] >> 5 & 1
    length = (alone, 2, 4, 8)[flag]
    start = 6 - alone + (0, 1, 2, 4)[data[4] & 3]
    size = int.from_bytes(data[start : start + length], "little") + (256 if length == 2 else 0)
    return size if length else math.inf
