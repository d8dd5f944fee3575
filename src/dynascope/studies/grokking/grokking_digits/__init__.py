"""Grokking of digits: four settings that shorten the delay, and equivalences between them."""
