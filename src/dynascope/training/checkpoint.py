"""Checkpoint files, from which a run resumes with identical results."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np

from dynascope import __version__
from dynascope.errors import InputError
from dynascope.flows.ensemble import Ensemble
from dynascope.results.whole_files import written_beside
from dynascope.validation import checked, require, shown_error
from dynascope.validation.bounded_scalars import PositiveFloat

__all__ = ["Checkpoint", "CheckpointFile", "digest"]


@checked
@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A file that stores the state of a run. If the file exists, the run resumes from it.

    `checkpoint="run.npz"` is short for `checkpoint=Checkpoint("run.npz")`.

    Attributes:
        path: Path of the file.
        seconds: Seconds between writes, > 0. The file is also written if the run is interrupted and when it ends.

    Raises:
        InputError: If `path` is not a file name or `seconds` is not positive.

    Example:
        >>> Checkpoint("run.npz").seconds
        60.0
    """

    path: str | os.PathLike[str]
    seconds: PositiveFloat = 60.0

    @classmethod
    def of(cls, checkpoint: str | os.PathLike[str] | Checkpoint) -> Checkpoint:
        """Return `checkpoint`, or `Checkpoint(checkpoint)` for a path."""
        return checkpoint if isinstance(checkpoint, Checkpoint) else cls(checkpoint)


@dataclasses.dataclass
class CheckpointFile:
    """Reads and writes the file of a checkpoint.

    The file is written under a temporary name and then renamed. The file contains only arrays and text, so reading the
    file does not execute any code.

    Attributes:
        path: Path of the file.
        ensemble: The members of the run.
        identity: A digest or string for each aspect of the run; all of them must match those in the file.
        seconds: Seconds between writes.
        written: Time of the last write, from `time.monotonic`.
    """

    path: Path
    ensemble: Ensemble
    identity: Mapping[str, str]
    seconds: float
    written: float = dataclasses.field(default_factory=time.monotonic)

    def __post_init__(self):
        require(
            self.path.parent.is_dir() and not self.path.is_dir(),
            f"checkpoint is {str(self.path)!r}",
            argument="checkpoint",
            value=str(self.path),
            remedy="give a file name in an existing folder",
        )
        # Fail now rather than after hours of training.
        place = self.path if self.path.exists() else self.path.parent
        require(
            os.access(place, os.W_OK) and os.access(self.path.parent, os.W_OK),
            f"checkpoint {str(self.path)!r} is not writable",
            argument="checkpoint",
            value=str(self.path),
            remedy="choose a folder with write permission",
        )

    def read(self, results: list[Any]) -> tuple[int, list[Any]]:
        """Read the step and the results from the file.

        Args:
            results: The results before the first step, whose structure the file must match.

        Returns:
            The step and the results in the file; if the file does not exist, zero and the given results.

        Raises:
            InputError: If the file is damaged, or if it belongs to another run or version.
        """
        if not self.path.exists():
            return 0, results
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                header = json.loads(bytes(stored["header"]))
                leaves = [stored[f"array_{place}"] for place in range(header["arrays"])]
            identity, done, types = dict(header["identity"]), int(header["step"]), header["types"]
        except (OSError, ValueError, KeyError, TypeError, BadZipFile, EOFError) as error:
            raise self._rejection(f"cannot be read ({shown_error(error)})") from error
        for aspect, own in {"version": __version__, **self.identity}.items():
            if identity.get(aspect) != own:
                versions = f" ({identity.get(aspect)}, but this is {own})" if aspect == "version" else ""
                raise self._rejection(f"belongs to another {aspect}{versions}")
        expected = self._flat(results)
        fits = len(leaves) == len(expected) and all(
            leaf.shape == now.shape and kind == str(now.dtype)
            for leaf, now, kind in zip(leaves, expected, types, strict=True)
        )
        if not fits:
            raise self._rejection("contains arrays of other shapes than this run")
        leaves = [leaf.view(now.dtype) for leaf, now in zip(leaves, expected, strict=True)]
        found = []
        for each, own in zip(results, self.ensemble.parts(leaves), strict=True):
            before, structure = jax.tree.flatten(each)
            after = [_like(old, new) for old, new in zip(before, own, strict=True)]
            found.append(jax.tree.unflatten(structure, after))
        return done, found

    def write_if_due(self, done: int, results: list[Any]) -> None:
        """Write the file if the last write was more than `seconds` ago."""
        if time.monotonic() - self.written >= self.seconds:
            self.write(done, results)

    def write(self, done: int, results: list[Any]) -> None:
        """Write the step and the results to the file."""
        leaves = self._flat(results)
        header = {
            "identity": {"version": __version__, **self.identity},
            "step": done,
            "arrays": len(leaves),
            "types": [str(leaf.dtype) for leaf in leaves],
        }
        arrays = {f"array_{place}": _stored(leaf) for place, leaf in enumerate(leaves)}
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
        with written_beside(self.path) as partial, open(partial, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        self.written = time.monotonic()

    def _flat(self, results: list[Any]) -> list[Any]:
        """Return all arrays of states and curves, with the members of all parts concatenated."""
        parts = [[_numbers(leaf) for leaf in jax.tree.leaves(each)] for each in results]
        if not self.ensemble.dimensions:
            return parts[0]
        members = int(np.prod(self.ensemble.shape))
        return [np.concatenate(leaves)[:members] for leaves in zip(*parts, strict=True)]

    def _rejection(self, problem: str) -> InputError:
        return InputError(
            f"the checkpoint {str(self.path)!r} {problem}",
            argument="checkpoint",
            value=str(self.path),
            remedy="use the network, task and settings of the saved run, choose another file, or delete this file",
        )


def digest(*trees: Any) -> str:
    """Return a hash of arrays and other values; hashes are equal only for equal values.

    Example:
        >>> digest(np.ones(2)) == digest(np.ones(2)), digest(np.ones(2)) == digest(np.zeros(2))
        (True, False)
    """
    found = hashlib.sha256()
    leaves, structure = jax.tree.flatten(trees)
    found.update(_without_addresses(str(structure)).encode())
    for leaf in leaves:
        if isinstance(leaf, np.ndarray | jax.Array):
            array = np.ascontiguousarray(leaf)
            found.update(f"{array.dtype}{array.shape}".encode())
            found.update(array.view(np.uint8).data if array.size and array.ndim else array.tobytes())
        else:
            found.update(_without_addresses(repr(leaf)).encode())
    return found.hexdigest()


def _without_addresses(text: str) -> str:
    """Remove memory addresses, which differ between processes, from a string."""
    return " ".join(part for part in text.split() if not part.startswith("0x"))


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _numbers(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(old: Any, new: Any) -> Any:
    return jax.random.wrap_key_data(new, impl=jax.random.key_impl(old)) if _is_key(old) else new


def _stored(leaf: np.ndarray) -> np.ndarray:
    """Convert an array to a type that NumPy files support; other types, such as bfloat16, are stored as bits."""
    return leaf if leaf.dtype.kind in "fiub" and leaf.dtype.isbuiltin == 1 else leaf.view(f"u{leaf.dtype.itemsize}")
