"""Overfitting of noisy labels: benign for a target in strong modes, malignant for a target in weak modes."""
