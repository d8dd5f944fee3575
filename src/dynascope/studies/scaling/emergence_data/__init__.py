"""The number of samples a network needs to learn each skill, forecast from networks trained on one skill."""
