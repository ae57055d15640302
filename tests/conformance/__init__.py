"""Conformance by generation: random models against independent reference runtimes."""
