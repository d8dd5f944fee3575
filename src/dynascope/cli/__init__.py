"""The command line."""

from dynascope.cli.program import main

__all__ = ["main"]
