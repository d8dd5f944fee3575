"""Sparse parity with many skills: its samples, its population, and how much of each skill a function has."""
