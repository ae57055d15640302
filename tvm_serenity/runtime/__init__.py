"""Running compiled modules and measuring what they allocate."""
