"""Credit assignment without weight symmetry: accuracy, alignment, fragility and noise of seven rules."""
