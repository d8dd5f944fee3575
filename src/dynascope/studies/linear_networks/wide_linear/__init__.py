"""Networks with several outputs: the imbalance of the layers alone tells how their function moves."""
