"""How strong, useful and used the features of a network are, trained fully and in its last layer alone."""
