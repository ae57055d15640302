"""Everything that touches Relax (apache-tvm 0.27): reads graphs off modules, writes orders back.

``lower`` fuses, ``quantize*`` makes integer kernels, ``rewrite*`` exchanges subgraphs, ``rows*``
splits into rows, ``read`` makes a ``Graph``, ``schedule`` writes an order back and ``plan_memory``
an arena; ``pipeline`` is all of it. ``tvm_serenity.passes`` are the same as pass classes.
"""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before anything that fails without

from tvm_serenity.relax import legalize

legalize.register()
