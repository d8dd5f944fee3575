"""Grokking on digits: four settings that shorten the delay, and equivalences between settings."""
