"""Deep linear networks: lazy or from saddle to saddle, by how the initial variance falls with the width."""
