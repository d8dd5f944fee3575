"""Parametrisation accuracy: test accuracy of wide networks that learn features and of those with a constant kernel."""
