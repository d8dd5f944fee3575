"""Grokking of modular arithmetic: fitting, delayed generalisation, and features during training."""
