"""Gradient flow conserves a charge for every symmetry; the ε of a normalisation layer causes a predictable drift."""
