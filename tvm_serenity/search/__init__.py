"""Code that all searches share: outcomes, one deadline, workers, and sweeps over many points."""
