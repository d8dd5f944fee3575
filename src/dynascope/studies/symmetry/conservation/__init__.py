"""Conserved quantities of gradient flow, and their drift if ε breaks a symmetry."""
