"""Anomalous diffusion of SGD at the end of training, and its exponents from the spectrum of the curvature."""
