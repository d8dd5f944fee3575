"""Tasks from files: arrays, tables and images, and the digits that need no file."""
