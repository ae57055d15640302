"""Where tensors, bands and workspace lie in the memories of a board."""
