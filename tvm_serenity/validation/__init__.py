"""Checking what was compiled: fresh inputs, results compared, differences reported.

``ranges`` says which values inputs may hold, ``inputs`` draws them, ``report`` compares arrays and
describes the first difference, with a file that shows it again.
"""
