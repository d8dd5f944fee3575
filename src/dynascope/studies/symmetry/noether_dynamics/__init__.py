"""The norm of a normalised layer acts as an adaptive learning rate: steps increase it, and weight decay reduces it."""
