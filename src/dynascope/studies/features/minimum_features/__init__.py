"""Minimum features: which dials bring the features of a network down to the functions it needs."""
