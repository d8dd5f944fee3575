"""How wide what the command line prints may be."""

import shutil

__all__ = ["page_width"]

_WIDEST = 120  # beyond it a line is hard to follow


def page_width() -> int:
    """Columns to fill: those of the terminal, or what COLUMNS says, or 80 where the output goes elsewhere."""
    return min(shutil.get_terminal_size().columns, _WIDEST)
