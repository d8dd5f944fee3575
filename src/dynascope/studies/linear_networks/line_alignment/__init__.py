"""The layers of a linear network align, or disalign, as target and start decide before training."""
