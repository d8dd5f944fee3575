"""How flows are followed: step sizes, a solver for stiff flows, and which points of a path are kept."""
