"""Computes the least peak of an exported PyTorch program over all orders, with a certificate.

from tvm_serenity.torch import peak

result = peak(torch.export.export(model, inputs))
print(result)           # bytes of the given order, bytes of the best order, and the bound
result.certificate()    # ``serenity check`` verifies it without the search
"""

from tvm_serenity.frontends.torch_nodes import BoundNodes, read_nodes
from tvm_serenity.torch.peak import Peak, peak

__all__ = ["BoundNodes", "Peak", "peak", "read_nodes"]
