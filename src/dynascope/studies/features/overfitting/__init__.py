"""Overfitting to noisy labels is benign for a target in strong modes and malignant for a target in weak modes."""
