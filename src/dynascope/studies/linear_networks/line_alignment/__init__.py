"""Alignment on a line: target and initial weights determine whether the layers of a linear network align."""
