"""Wide linear networks: the function obeys an equation that contains the layer imbalance δ only as δ²."""
