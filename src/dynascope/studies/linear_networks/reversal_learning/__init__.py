"""Reversal learning: networks with unbalanced layers relearn quickly, but exactly balanced networks never relearn."""
