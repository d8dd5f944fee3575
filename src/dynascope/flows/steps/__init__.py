"""Training by discrete steps: any loss, any optimiser, and what happens inside a step."""
