"""The command line."""

from dynascope.cli.commands import main

__all__ = ["main"]
