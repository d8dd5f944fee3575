"""What the command line returns to the shell."""

__all__ = ["AGREED", "BAD_INPUT", "DISAGREED", "FAILED", "INTERRUPTED", "UNDECIDED", "code_of"]

AGREED = 0  # or done
DISAGREED = 1
BAD_INPUT = 2
FAILED = 3
UNDECIDED = 4
INTERRUPTED = 130  # as shells say it


def code_of(verdict: str | None) -> int:
    """What a verdict returns to the shell; a prediction without one is done.

    Example:
        >>> code_of("undecided")
        4
    """
    return {"disagree": DISAGREED, "undecided": UNDECIDED}.get(verdict or "", AGREED)
