"""Final norm: larger initial weights lead to a larger norm after training, and to a lower test accuracy."""
