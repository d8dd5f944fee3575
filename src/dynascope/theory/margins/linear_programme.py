"""SciPy's linear programmes, of type `Any`: checkers of types would read in its sources for seconds what they give."""

from __future__ import annotations

from typing import Any

import scipy.optimize

__all__ = ["linprog"]

linprog: Any = scipy.optimize.linprog
