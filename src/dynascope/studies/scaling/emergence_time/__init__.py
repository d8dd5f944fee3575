"""The training step at which a network learns each skill, forecast from networks that learn one skill alone."""
