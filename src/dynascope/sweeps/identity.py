"""What must be equal when a sweep continues: the names of arguments, and the source code."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dynascope.validation import require

__all__ = ["require_names", "source_digest"]


def require_names(names: Sequence[str], known: Sequence[str], problem: str) -> None:
    """Require that arguments are known and given once."""
    unknown = [name for name in names if name not in known]
    remedy = f"choose from {', '.join(known)}"
    require(not unknown, f"{problem} {', '.join(unknown)}", argument="over", value=unknown, remedy=remedy)
    twice = sorted({name for name in names if list(names).count(name) > 1})
    problem, remedy = f"{', '.join(twice)} is varied in over and also fixed", "give it once"
    require(not twice, problem, argument="over", value=twice, remedy=remedy)


def source_digest(subject: Any) -> str:
    """A digest of the source code of a function, or of all modules in the folder of a study; empty if unknown."""
    try:
        if not isinstance(subject, type):
            text = inspect.getsource(subject)
        else:
            file = Path(inspect.getfile(subject))
            files = sorted(file.parent.glob("*.py")) if file.name == "study.py" else [file]
            text = "".join(each.read_text("utf-8") for each in files)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
