"""Small targets make a network lazy: its function and features approach a limit at a predicted rate."""
