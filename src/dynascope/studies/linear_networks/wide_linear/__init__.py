"""Wide linear networks: the function obeys an equation that depends on the layer imbalance δ only through δ²."""
