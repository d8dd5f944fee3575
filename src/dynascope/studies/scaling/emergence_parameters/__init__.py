"""The number of neurons with which a network learns each skill, forecast from networks that learn one skill alone."""
