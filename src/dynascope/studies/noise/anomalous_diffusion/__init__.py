"""Anomalous diffusion of SGD at the end of training, with exponents predicted from the curvature spectrum."""
