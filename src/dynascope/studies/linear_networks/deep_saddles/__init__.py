"""Deep linear networks train lazily or move from saddle to saddle, depending on the initial variance."""
