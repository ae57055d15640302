"""What an op of a net computes, said to a builder: each rule's file has what it adds to that.

1. Operands: a piece may be a part of a tensor, or computed while it is read (``no_copies``);
   several pieces are one operand (``fold``).
2. A concat is its operand. An op on channels is its source op of some of them (``kernelwise``).
3. A convolution is a term of a sum (``channelwise``), which others may have begun and whose bias
   and activation come with its last term (``residual``).
"""

from tvm_serenity.rewrite.builder import Builder, Expr
from tvm_serenity.rewrite.net import Kind, Node
from tvm_serenity.rewrite.rules import channelwise, fold, kernelwise, residual


def emit(build: Builder, node: Node) -> Expr:
    """Return what ``node`` computes."""
    operands = [fold.emit(build, operand) for operand in node.operands]
    if node.kind is Kind.CONCAT:
        return operands[0]
    if node.kind is not Kind.CONV:
        return kernelwise.emit(build, node, operands)
    return residual.emit(build, node, channelwise.emit(build, node, operands[0]))
