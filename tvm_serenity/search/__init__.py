"""Code that all searches share: outcomes, deadlines, worker processes, and sweeps."""
