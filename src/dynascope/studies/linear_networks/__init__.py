"""Studies of linear networks, whose training is solved exactly."""
