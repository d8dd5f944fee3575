"""The documentation strings of Python's standard library, as a text to learn."""

from __future__ import annotations

import ast
import functools
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["python_documentation"]

_TESTS = {"idle_test", "test", "tests"}  # folders
_DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef


@checked
def python_documentation(characters: PositiveInt = 1_000_000) -> str:
    """Collect documentation strings of the installed standard library, without importing its modules.

    The source files are parsed in alphabetical order, without tests. Within a file, the order is that of `ast.walk`:
    the module first, then its classes and functions, then their methods. Blank lines separate the strings. The text
    depends only on the version of Python and on the optional modules that are installed.

    Args:
        characters: Length of the text; Python 3.11 has about 1.8 million characters of documentation.

    Returns:
        The first `characters` characters.

    Raises:
        InputError: If the standard library has fewer characters of documentation, or no source files.

    Example:
        >>> text = python_documentation(500)
        >>> print(text.splitlines()[0])
        Record of phased-in incompatible language changes.
    """
    text = _documentation(Path(sysconfig.get_path("stdlib")), characters)
    require(
        len(text) == characters,
        f"characters is {characters}, but the installed standard library has {len(text)} characters of documentation",
        argument="characters",
        value=characters,
        remedy="choose a smaller number" if text else "install Python with the sources of its standard library",
    )
    return text


@functools.lru_cache(maxsize=4)
def _documentation(library: Path, characters: int) -> str:
    parts: list[str] = []
    length = 0
    for part in _strings(library):
        parts.append(part)
        length += len(part) + 2
        if length > characters + 1:
            break
    return "\n\n".join(parts)[:characters]


def _strings(library: Path) -> Iterator[str]:
    files = sorted((each.relative_to(library).with_suffix("").parts, each) for each in library.rglob("*.py"))
    for parts, file in files:
        # Names that cannot be imported belong to installed packages ("site-packages") and build settings.
        if not all(map(str.isidentifier, parts)) or _TESTS & set(parts):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escape sequences, which newer versions report
            tree = ast.parse(file.read_bytes())
        for node in ast.walk(tree):
            text = ast.get_docstring(node) if isinstance(node, _DOCUMENTED) else None
            if text:
                yield text
