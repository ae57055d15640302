"""Files, child processes, the cache and figures."""
