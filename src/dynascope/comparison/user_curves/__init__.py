"""Loss curves logged by the user: read them, convert units, judge a prediction by them."""
