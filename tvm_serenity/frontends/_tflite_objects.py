"""A ``.tflite`` file as mutable objects of LiteRT's own schema."""

from typing import Any

from tvm_serenity.errors import MissingPartError


def schema(what: str) -> Any:
    """Return LiteRT's schema.

    Raises :class:`MissingPartError`, which says that ``what`` needs it, if it is not installed.
    """
    try:
        from ai_edge_litert import schema_py_generated
    except ImportError as error:
        raise MissingPartError(
            f"{what} needs {error.name or error}; run pip install tflite flatbuffers"
        ) from None
    return schema_py_generated


def read(data: bytes, what: str) -> Any:
    """Return a file as a ``ModelT``."""
    known = schema(what)
    return known.ModelT.InitFromObj(known.Model.GetRootAs(data))


def written(model: Any) -> bytes:
    """Return the file of a ``ModelT``."""
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def kinds(model: Any, what: str) -> list[str]:
    """Return the name of each operator code of the model, "CUSTOM" for custom ones."""
    codes = {v: k for k, v in vars(schema(what).BuiltinOperator).items() if k.isupper()}
    return [
        codes.get(max(c.builtinCode, c.deprecatedBuiltinCode), "CUSTOM")
        for c in model.operatorCodes
    ]
