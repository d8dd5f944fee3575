"""Transfer learning: the imbalance between the layers determines which old features a new task can reuse."""
