"""The bounds of arguments in the reference, read from the annotations by which they are checked."""

from __future__ import annotations

import inspect
import re
from typing import Any, get_args

from dynascope.validation.annotations import bounds_of, kinds_of

_NOUNS = {int: "integer", float: "number"}


def add_bounds(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Add the bounds to the lines of a docstring that describe its arguments, in place."""
    sources = [inspect.unwrap(each) for each in (obj, getattr(obj, "__init__", None)) if callable(each)]
    kinds: dict[str, Any] = {}
    for source in sources:
        if inspect.isfunction(source) or inspect.isclass(source):
            kinds |= kinds_of(source)
    section = ""
    for place, line in enumerate(lines):
        if line and not line.startswith(" "):
            section = line
        argument = re.match(r"    (\w+): ", line)
        if section in ("Args:", "Attributes:") and argument and (words := bounds_in_words(kinds.get(argument[1]))):
            lines[place] = f"    {argument[1]} ({words}): {line[argument.end() :]}"


def bounds_in_words(kind: Any) -> str:
    """As in "integer of at least 2"; nothing where an annotation states no bounds."""
    for each in (kind, *get_args(kind)):  # of an optional argument, those of what is given
        if (bounds := bounds_of(each)) is not None and bounds.words:
            return f"{_NOUNS.get(get_args(each)[0], 'numbers')} {bounds.words}"
    return ""


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx, before docstrings in the style of Google are read."""
    app.connect("autodoc-process-docstring", add_bounds, priority=0)
    return {"parallel_read_safe": True}
