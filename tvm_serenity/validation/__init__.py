"""Validation of compiled code: fresh inputs, compared results, reported differences.

``ranges`` derives the values that inputs may hold, ``inputs`` draws them, ``report`` compares
arrays, describes the first difference and writes a file that reproduces it.
"""
