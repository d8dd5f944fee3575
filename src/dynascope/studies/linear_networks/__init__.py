"""Studies of linear networks with exactly solvable training dynamics."""
