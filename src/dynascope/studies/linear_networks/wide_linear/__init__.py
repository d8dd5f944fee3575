"""Wide linear networks: the function obeys an equation that depends on the imbalance of the layers only as δ²."""
