"""Deep linear networks with small initial weights have a vanishing initial NTK and learn mode by mode."""
