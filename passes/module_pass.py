"""What every pass of the package is."""

import tvm


class ModulePass:
    """A pass: called on a module, or one of the passes of ``tvm.transform.Sequential``.

    ``tvm.transform.module_pass`` turns the classes into ``tvm.transform.ModulePass``, which calls
    ``transform_module`` under TVM's instruments. Type checkers see what is written here.
    """

    def __call__(self, mod: tvm.IRModule) -> tvm.IRModule:
        """Return ``mod`` after the pass; ``mod`` itself is not changed."""
        return self.transform_module(mod, tvm.transform.PassContext.current())

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module the pass makes of ``mod``."""
        raise NotImplementedError
