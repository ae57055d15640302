"""Firmware for Cortex-M: programs as C projects, built, run and verified.

``program`` is what every route produces; ``tir`` makes one from a Relax module; ``emit`` writes
the project; ``fit`` says whether it fits; ``build`` compiles; ``run`` and ``verify`` execute.
"""
