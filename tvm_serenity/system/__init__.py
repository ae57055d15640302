"""Files, child processes, the cache and figures: what the machine does for us."""
