"""Transfer learning: the balance of the layers determines which features of an old task a new task can use."""
