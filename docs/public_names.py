"""A summary of each room in the reference, and a warning about public names that the reference lacks."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.util import logging

import dynascope

_LOGGER = logging.getLogger(__name__)


def add_summary(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Add a table of the functions and classes of a room to its docstring, in place."""
    if what == "module" and name.startswith("dynascope."):
        public = [(each, getattr(obj, each)) for each in getattr(obj, "__all__", ())]
        functions = [each for each, value in public if inspect.isroutine(value)]
        names = functions + [each for each, value in public if inspect.isclass(value)]
        if names:
            lines += ["", ".. autosummary::", "   :nosignatures:", "", *(f"   {each}" for each in names), ""]


def require_names(app: Any, env: Any) -> None:
    """Warn of public functions and classes that no page describes; a strict build fails on that."""
    described = {name.rpartition(".")[2] for name in env.domains["py"].objects}
    for room, name in public_names():
        if name not in described:
            _LOGGER.warning("the reference lacks %s of %s", name, room)


def public_names() -> Iterator[tuple[str, str]]:
    """Room and name of what the stubs offer; they are read, as PyTorch may not be installed."""
    package = Path(inspect.getfile(dynascope)).parent
    for stub in sorted(package.rglob("*.pyi")):
        room = ".".join(stub.parent.relative_to(package.parent).parts)
        for node in ast.walk(ast.parse(stub.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from ((room, alias.asname or alias.name) for alias in node.names)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("autodoc-process-docstring", add_summary)
    app.connect("env-check-consistency", require_names)
    return {"parallel_read_safe": True}
