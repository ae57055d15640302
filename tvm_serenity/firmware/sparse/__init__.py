"""Firmware of sparse networks: connections in an I/O-efficient order, on a fast memory of M values.

``words`` writes an order as the instructions of an interpreter, ``interpreter`` makes a
:class:`Program` of them, ``reference`` computes what it must return, and ``building`` writes,
checks and measures the project.
"""
