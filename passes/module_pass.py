"""The base class of all passes in the package."""

import tvm


class ModulePass:
    """A module pass: call it on a module, or list it in ``tvm.transform.Sequential``.

    ``tvm.transform.module_pass`` turns each class into ``tvm.transform.ModulePass``, which calls
    ``transform_module`` under TVM's instruments. This class is what type checkers see.
    """

    def __call__(self, mod: tvm.IRModule) -> tvm.IRModule:
        """Return ``mod`` after the pass; ``mod`` itself does not change."""
        return self.transform_module(mod, tvm.transform.PassContext.current())

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return ``mod`` after the pass."""
        raise NotImplementedError
