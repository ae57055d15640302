"""Emits the computation of an op through a builder; each rule's file adds its part.

1. Operands: a piece may be a part of a tensor, or be computed while it is read (``no_copies``);
   several pieces form one operand (``fold``).
2. A concat is its operand. A per-channel op is its source op on some channels (``kernelwise``).
3. A convolution is a term of a sum (``channelwise``), which other ops may have begun; its bias and
   activation come with the last term (``residual``).
"""

from tvm_serenity.rewrite.builder import Builder, Expr
from tvm_serenity.rewrite.net import Kind, Node
from tvm_serenity.rewrite.rules import channelwise, fold, kernelwise, residual


def emit(build: Builder, node: Node) -> Expr:
    """Return the expression of ``node``."""
    operands = [fold.emit(build, operand) for operand in node.operands]
    if node.kind is Kind.CONCAT:
        return operands[0]
    if node.kind is not Kind.CONV:
        return kernelwise.emit(build, node, operands)
    return residual.emit(build, node, channelwise.emit(build, node, operands[0]))
