"""Checks of a program and of its project: replays, trials and comparisons. No TVM here."""
