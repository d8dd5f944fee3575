"""How many quantities does training leave alone? Laws counted from gradients alone, against closed forms."""
