"""Kernel regression on n samples learns a predictable fraction of each mode of the target."""
