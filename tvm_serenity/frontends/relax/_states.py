"""Attributes of imported modules; firmware reads them where no importer is installed."""

STATES = "serenity.states"
"""Attribute of ``main``: its last parameters and results are states, filled with these values."""

OPERATORS = "serenity.operators"
"""Attribute of ``main`` of a ``.tflite`` file: what a message calls each variable's operator."""
