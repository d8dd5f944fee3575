"""Types in the signatures of the reference, as the source writes them."""

from __future__ import annotations

import inspect
from typing import Any


class _Written(str):
    """An annotation as in the source, without quotes."""

    __repr__ = str.__str__


def add_types(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """The signature with the names of types: evaluated, the type of an array with bounds takes several lines."""
    if what not in ("function", "method", "class") or signature is None:
        return None
    try:
        found = inspect.signature(inspect.unwrap(obj))
    except (TypeError, ValueError):
        return None
    parameters = [each.replace(annotation=_written(each.annotation)) for each in found.parameters.values()]
    if what == "method" and parameters and parameters[0].name in ("self", "cls"):
        del parameters[0]
    result = None if found.return_annotation is found.empty else str(found.return_annotation)
    return str(found.replace(parameters=parameters, return_annotation=found.empty)), result


def _written(annotation: Any) -> Any:
    annotation = getattr(annotation, "__forward_arg__", annotation)  # as named tuples keep strings
    return _Written(annotation) if isinstance(annotation, str) else annotation


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("autodoc-process-signature", add_types)
    return {"parallel_read_safe": True}
