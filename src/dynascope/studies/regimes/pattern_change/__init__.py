"""Upstream neurons change their activation pattern before the loss falls, downstream neurons after it."""
