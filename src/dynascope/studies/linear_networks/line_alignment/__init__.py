"""Alignment on a line: the target and the initialisation decide whether the layers of a linear network align."""
