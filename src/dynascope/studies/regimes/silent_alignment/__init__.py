"""Silent alignment: the tangent kernel of a small linear network aligns before the loss falls."""
