"""Studies of regimes: lazy or rich, by scale, width and rates."""
