"""Studies of symmetries and of what they conserve."""
