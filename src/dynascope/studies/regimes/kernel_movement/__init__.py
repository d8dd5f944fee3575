"""Kernel movement: the relative scale of the layers decides how soon a deep ReLU network changes its kernel."""
