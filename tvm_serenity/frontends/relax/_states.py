"""The attribute of a module with states; firmware reads it where no importer is installed."""

STATES = "serenity.states"
"""Attribute of ``main``: its last parameters and results are states, filled with these values."""
