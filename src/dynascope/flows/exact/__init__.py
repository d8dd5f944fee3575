"""Gradient flow of solvable networks by exact changes of variables, at any initialisation scale."""
