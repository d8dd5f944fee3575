"""Linear autoencoders learn principal directions one by one; only weight decay makes the directions identifiable."""
