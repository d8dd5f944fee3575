"""The initial NTK of deep linear networks vanishes for small initial weights, from which they learn mode by mode."""
