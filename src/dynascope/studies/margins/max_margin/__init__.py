"""Classifiers whose parameters grow at several rates keep only the fastest small, and their margin may suffer."""
