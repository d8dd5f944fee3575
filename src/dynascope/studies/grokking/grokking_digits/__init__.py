"""Four changes in the training settings shorten the grokking delay of networks trained on digits."""
