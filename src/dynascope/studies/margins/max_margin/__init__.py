"""If parameters grow at different rates, gradient flow minimises only the fastest-growing, which can reduce margins."""
