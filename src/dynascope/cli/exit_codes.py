"""Exit codes of the command line."""

__all__ = ["AGREED", "BAD_INPUT", "DISAGREED", "FAILED", "INTERRUPTED", "UNDECIDED", "code_of"]

AGREED = 0  # or finished without a comparison
DISAGREED = 1
BAD_INPUT = 2
FAILED = 3
UNDECIDED = 4
INTERRUPTED = 130  # 128 + SIGINT, as in shells


def code_of(verdict: str | None) -> int:
    """Return the exit code for a verdict, or 0 if there is no verdict.

    Example:
        >>> code_of("undecided")
        4
    """
    return {"disagree": DISAGREED, "undecided": UNDECIDED}.get(verdict or "", AGREED)
