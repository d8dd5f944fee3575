"""Alignment on a line: the target and the initial weights determine whether the layers of a linear network align."""
