"""The lines of a diagnosis, one topic per module."""
