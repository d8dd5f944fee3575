"""Steps of descent stray from gradient flow in proportion to the rate, and follow a modified flow one order better."""
