"""Grokking of modular arithmetic: the fit, the delayed generalisation, and the features during training."""
