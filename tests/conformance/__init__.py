"""Conformance by generation: random models against independent judges."""
