"""Grokking on digits: four changes that shorten the delay, and equivalences between settings."""
