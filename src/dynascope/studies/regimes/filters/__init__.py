"""Filters: the relative scale of the layers decides whether the first-layer filters of a CNN become structured."""
