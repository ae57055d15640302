"""Check a program and its project by replays, trial runs and comparisons, without TVM."""
