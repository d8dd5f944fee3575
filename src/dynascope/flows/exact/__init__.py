"""Gradient flow of solvable networks in exact variables, from any initialisation scale."""
