"""Credit assignment without weight symmetry: accuracy, alignment, fragility and noise tolerance of seven rules."""
