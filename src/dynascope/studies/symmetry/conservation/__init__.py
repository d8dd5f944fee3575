"""Gradient flow conserves a charge for every symmetry; the ε of a normalisation makes it drift at a known rate."""
