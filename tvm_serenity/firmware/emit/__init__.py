"""A program as a firmware project: files, and a directory that holds all of them or none."""

from tvm_serenity.firmware.emit.project import project, write_project

__all__ = ["project", "write_project"]
