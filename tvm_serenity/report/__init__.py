"""The HTML report: one self-contained page with the numbers of the command line."""

from tvm_serenity.report.layout import Drawing, layered
from tvm_serenity.report.page import page
from tvm_serenity.report.shapes import graph_json, order_json

__all__ = ["Drawing", "graph_json", "layered", "order_json", "page"]
