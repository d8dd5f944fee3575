"""Studies of scaling laws and of the emergence of skills."""
