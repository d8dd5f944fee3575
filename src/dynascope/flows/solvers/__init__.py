"""Solvers of flows: adaptive step sizes, explicit and implicit methods, and interpolation of trajectories."""
