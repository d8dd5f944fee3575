"""Several learning rules train deep networks without sending errors back through the transposed weights."""
