"""Multitask sparse parity: samples, population, and the skill strengths of a function."""
