"""The training step at which a network learns each skill, forecast from networks trained on one skill."""
