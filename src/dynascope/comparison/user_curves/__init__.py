"""Loss curves logged by the user: reading, conversion of units, and comparison with a prediction."""
