"""At which step a network learns each of its skills, forecast from one skill that is trained alone."""
