"""During SGD, the Noether charges of a convolutional network change according to known laws."""
