"""Transfer learning: the imbalance between the layers determines which features of an old task a new task can use."""
