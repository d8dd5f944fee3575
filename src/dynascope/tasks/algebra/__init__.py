"""Algebraic tasks: modular arithmetic and composition in finite groups."""
