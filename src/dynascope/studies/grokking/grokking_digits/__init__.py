"""Grokking of digits: the effect of four settings on the delay, and equivalences between these settings."""
