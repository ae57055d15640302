"""The options of all commands, as dataclasses that describe themselves.

A command takes a dataclass that inherits the groups it has: ``model`` (what is read), ``memory``,
``rows``, ``speed``, ``output`` and ``checks``. ``option`` says what a field carries. A new option
is a field here, and the code that uses it.
"""
