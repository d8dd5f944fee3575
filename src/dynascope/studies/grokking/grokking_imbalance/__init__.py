"""The relative scale of the first and the last layer changes the time to grok modular addition."""
