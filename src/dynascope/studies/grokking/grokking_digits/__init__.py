"""Grokking of digits: what four dials do to the delay, and which of them are one dial in disguise."""
