"""Weights, target, input and output of a scalar network are four equivalent dials from lazy to rich learning."""
