"""The number of samples from which a network learns each skill, forecast from networks that learn one skill alone."""
