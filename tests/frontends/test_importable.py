"""The lists of what TVM's importers convert, beside those of the TVM that is installed."""

import inspect
import re

import pytest

pytest.importorskip("tvm")
pytest.importorskip("tflite")
pytest.importorskip("onnx")

from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map
from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter

from tvm_serenity.frontends._importable import ONNX, TFLITE, TFLITE_QUANTISED
from tvm_serenity.frontends._onnx_loops import EXPAND
from tvm_serenity.frontends.relax._onnx_converters import CONVERTERS


def test_tflite() -> None:
    source = inspect.getsource(OperatorConverter.__init__)
    assert frozenset(re.findall(r'"([A-Z0-9_]+)": ', source)) == TFLITE
    assert TFLITE_QUANTISED == OperatorConverter._SUPPORTED_QUANTIZED_OPS


def test_onnx() -> None:
    prepared = {"Constant", "ConvInteger"}  # by ours, before TVM sees them
    assert {*_get_convert_map(), *CONVERTERS, *prepared} - {*EXPAND} == ONNX
