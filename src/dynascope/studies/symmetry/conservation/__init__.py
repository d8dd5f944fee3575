"""Conserved quantities of gradient flow, and their change where ε breaks a symmetry."""
