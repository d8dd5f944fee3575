"""Training all layers brings a network closer to minimum features than training the last layer alone."""
