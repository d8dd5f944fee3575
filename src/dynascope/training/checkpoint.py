"""The state of a run in a file, from which it goes on to the same numbers."""

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
    """A file in which the state of a run is kept, and from which the run goes on if it exists.

    The path alone, as in `checkpoint="run.npz"`, stands for `Checkpoint("run.npz")`.

    Attributes:
        path: The file.
        seconds: Time after which the file is written again; it also is at an interrupt and at the end.

    Raises:
        InputError: Something else than the name of a file, or a time that is not positive.

    Example:
        >>> Checkpoint("run.npz").seconds
        60.0
    """

    path: str | os.PathLike[str]
    seconds: PositiveFloat = 60.0

    @classmethod
    def of(cls, checkpoint: str | os.PathLike[str] | Checkpoint) -> Checkpoint:
        """The checkpoint, or that of this path."""
        return checkpoint if isinstance(checkpoint, Checkpoint) else cls(checkpoint)


@dataclasses.dataclass
class CheckpointFile:
    """A file with the state of a run.

    The file is written beside its place and renamed, holds arrays and text only, and is read without running code.

    Attributes:
        path: The file.
        ensemble: The members of the run.
        identity: What the run is, one digest or text for each aspect, which a file has to agree with.
        seconds: Time after which it is written again.
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
            remedy="give the name of a file in a folder that exists",
        )
        # Now rather than after hours of training.
        place = self.path if self.path.exists() else self.path.parent
        require(
            os.access(place, os.W_OK) and os.access(self.path.parent, os.W_OK),
            f"nothing can be written to {str(self.path)!r}",
            argument="checkpoint",
            value=str(self.path),
            remedy="choose a folder that you may write to",
        )

    def read(self, results: list[Any]) -> tuple[int, list[Any]]:
        """The step and the results in the file, in the form of those before the first step; these without a file.

        Raises:
            InputError: The file is damaged, or of another run or version.
        """
        if not self.path.exists():
            return 0, results
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                header = json.loads(bytes(stored["header"]))
                leaves = [stored[f"array_{place}"] for place in range(header["arrays"])]
            identity, done, types = dict(header["identity"]), int(header["step"]), header["types"]
        except (OSError, ValueError, KeyError, TypeError, BadZipFile, EOFError) as error:
            raise self._refused(f"cannot be read ({shown_error(error)})") from error
        for aspect, own in {"version": __version__, **self.identity}.items():
            if identity.get(aspect) != own:
                of_version = f" {identity.get(aspect)}, and this is {own}" if aspect == "version" else ""
                raise self._refused(f"is of another {aspect}{of_version}")
        expected = self._flat(results)
        fits = len(leaves) == len(expected) and all(
            leaf.shape == now.shape and kind == str(now.dtype)
            for leaf, now, kind in zip(leaves, expected, types, strict=True)
        )
        if not fits:
            raise self._refused("holds arrays of other shapes")
        leaves = [leaf.view(now.dtype) for leaf, now in zip(leaves, expected, strict=True)]
        found = []
        for each, own in zip(results, self.ensemble.parts(leaves), strict=True):
            before, structure = jax.tree.flatten(each)
            after = [_like(old, new) for old, new in zip(before, own, strict=True)]
            found.append(jax.tree.unflatten(structure, after))
        return done, found

    def write_if_due(self, done: int, results: list[Any]) -> None:
        """Write the file if it is time to."""
        if time.monotonic() - self.written >= self.seconds:
            self.write(done, results)

    def write(self, done: int, results: list[Any]) -> None:
        """Write the file."""
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
        """All arrays of the states and curves, those of members one after the other."""
        parts = [[_numbers(leaf) for leaf in jax.tree.leaves(each)] for each in results]
        if not self.ensemble.dimensions:
            return parts[0]
        members = int(np.prod(self.ensemble.shape))
        return [np.concatenate(leaves)[:members] for leaves in zip(*parts, strict=True)]

    def _refused(self, problem: str) -> InputError:
        return InputError(
            f"the checkpoint {str(self.path)!r} {problem}",
            argument="checkpoint",
            value=str(self.path),
            remedy="give the network, task and settings that it was made with, another file, or delete it",
        )


def digest(*trees: Any) -> str:
    """A text that is the same for the same arrays and other values only.

    Example:
        >>> digest(np.ones(2)) == digest(np.ones(2)), digest(np.ones(2)) == digest(np.zeros(2))
        (True, False)
    """
    found = hashlib.sha256()
    leaves, structure = jax.tree.flatten(trees)
    found.update(_without_places(str(structure)).encode())
    for leaf in leaves:
        if isinstance(leaf, np.ndarray | jax.Array):
            array = np.ascontiguousarray(leaf)
            found.update(f"{array.dtype}{array.shape}".encode())
            found.update(array.view(np.uint8).data if array.size and array.ndim else array.tobytes())
        else:
            found.update(_without_places(repr(leaf)).encode())
    return found.hexdigest()


def _without_places(text: str) -> str:
    """The text without addresses in memory, which differ between processes."""
    return " ".join(part for part in text.split() if not part.startswith("0x"))


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _numbers(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(old: Any, new: Any) -> Any:
    return jax.random.wrap_key_data(new, impl=jax.random.key_impl(old)) if _is_key(old) else new


def _stored(leaf: np.ndarray) -> np.ndarray:
    """Types that files of NumPy do not know, such as bfloat16, are stored as their bits."""
    return leaf if leaf.dtype.kind in "fiub" and leaf.dtype.isbuiltin == 1 else leaf.view(f"u{leaf.dtype.itemsize}")
