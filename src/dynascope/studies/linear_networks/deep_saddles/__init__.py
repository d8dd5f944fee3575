"""Deep linear networks: training is lazy or moves from saddle to saddle, depending on the initial variance."""
