"""The width of terminal output."""

import shutil

__all__ = ["page_width"]

_WIDEST = 120  # longer lines are hard to read


def page_width() -> int:
    """Return the width of the terminal or the value of COLUMNS, at most 120; 80 if the output is not a terminal."""
    return min(shutil.get_terminal_size().columns, _WIDEST)
