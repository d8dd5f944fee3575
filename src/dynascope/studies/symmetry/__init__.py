"""Studies of symmetries and the quantities they conserve."""
