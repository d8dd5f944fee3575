"""Studies of staircases: learning from small initialisation, one jump at a time."""
