"""Gradient flow conserves a charge for every symmetry; the ε of a normalisation layer makes it drift predictably."""
