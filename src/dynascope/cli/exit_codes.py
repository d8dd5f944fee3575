"""What the command line returns to the shell."""

__all__ = ["AGREED", "BAD_INPUT", "DISAGREED", "FAILED"]

AGREED = 0  # or done
DISAGREED = 1
BAD_INPUT = 2
FAILED = 3
