"""When a diagonal network with weight decay groks, and its whole late test curve, are known before it is trained."""
