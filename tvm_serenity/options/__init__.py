"""The options of all commands, as dataclasses that describe themselves.

A command takes a dataclass that inherits the option groups it needs: ``model`` (how a model is
read), ``memory``, ``rows``, ``speed``, ``output`` and ``checks``. ``option`` defines the metadata
of a field. A new option is a field here, and the code that uses it.
"""
