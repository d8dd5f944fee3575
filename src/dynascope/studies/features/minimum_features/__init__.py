"""Minimum features: which training settings reduce a network's features to the few its task needs."""
