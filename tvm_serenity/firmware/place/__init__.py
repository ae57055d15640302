"""Place tensors, bands and workspace in the memories of a board."""
