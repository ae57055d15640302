"""Support of Relax (apache-tvm 0.27): graphs from modules, and orders back into modules.

``lower`` fuses, ``quantize*`` creates integer kernels, ``rewrite*`` replaces subgraphs, ``rows*``
splits into rows, ``read`` returns a ``Graph``, ``schedule`` writes an order, ``plan_memory`` an
arena; ``pipeline`` combines them. ``tvm_serenity.passes`` offers the same as pass classes.
"""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before imports that fail without Relax

from tvm_serenity.relax import legalize

legalize.register()
