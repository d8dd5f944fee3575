"""What symmetries conserve stays while networks learn, and by how much the ε of a normalisation breaks it."""
