"""Classifiers whose parameters grow at different rates minimise only the fastest block, which may cost margin."""
