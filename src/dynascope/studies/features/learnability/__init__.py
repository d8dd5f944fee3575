"""How much of each mode of a target kernel regression learns from n samples, and what error is left."""
