"""A memory compiler for neural networks.

The way of the data, from file to execution:

    file --frontends--> Graph --schedule--> Schedule (an order, its peak, its proof)
         Graph + order --memory.live_ranges--> LiveRange --plan--> Plan (offsets in one arena)
    file --frontends.relax--> IRModule --passes--> IRModule in order, in one arena --TVM--> runs

``Graph`` and everything that works on it import no TVM; ``passes`` reads a ``Graph`` off a Relax
module, asks the same searches, and writes order and offsets back into the module.
"""

__version__ = "0.1.0"
