"""Studies of staircases: what is learned from small initialisation, one jump after the other."""
