"""The journal of a sweep: one line of JSON for each finished cell, written before the cell enters the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

__all__ = ["Journal"]


class Journal:
    """Finished cells that are not yet in the chunks of the store.

    A line is complete if it ends with a line break. A killed writer can leave one incomplete line at the end, which
    is removed when the journal is opened again.

    Attributes:
        path: The file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Journal(Path(folder, "journal.jsonl")) as journal:
        ...         journal.append({"cell": [0], "loss": 0.5})
        ...     with open(journal.path, "a") as file:
        ...         _ = file.write('{"cell": [1], "lo')
        ...     with Journal(journal.path) as journal:
        ...         list(journal.entries())
        [{'cell': [0], 'loss': 0.5}]
    """

    def __init__(self, path: Path):
        self.path = path
        self._file: FileIO = path.open("ab", buffering=0)
        self._remove_incomplete_line()

    def append(self, entry: dict[str, Any]) -> None:
        """Write one entry; after this call, killing the process does not lose it.

        Raises:
            OSError: The entry cannot be written. The journal then ends with the entry before it.
        """
        end, line = self._file.tell(), memoryview(json.dumps(entry).encode() + b"\n")
        try:
            while line:
                line = line[self._file.write(line) :]
        except OSError:
            self._file.truncate(end)
            raise

    def entries(self) -> Iterator[dict[str, Any]]:
        """The entries, in the order in which they were written."""
        with self.path.open("rb") as lines:
            for line in lines:
                yield json.loads(line)

    def clear(self) -> None:
        """Remove all entries, after they have been written to the store."""
        self._file.truncate(0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _remove_incomplete_line(self) -> None:
        content = self.path.read_bytes()
        self._file.truncate(content.rfind(b"\n") + 1)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
