"""Which TVM is installed: with Relay (up to 0.19), or with the Relax of apache-tvm 0.27."""

from importlib.util import find_spec

from tvm_serenity.errors import MissingPartError

try:
    import tvm
except ImportError as error:
    raise MissingPartError(
        f"this needs apache-tvm 0.27 ({error}): pip install 'tvm-serenity[run]'"
    ) from None

HAS_RELAY = find_spec("tvm.relay") is not None
HAS_RELAX = not HAS_RELAY and find_spec("tvm.tirx") is not None


def require_relax() -> None:
    """Raise :class:`MissingPartError` unless the Relax passes can run."""
    if not HAS_RELAX:
        raise MissingPartError(
            f"the Relax passes need apache-tvm 0.27, TVM {tvm.__version__} is installed: "
            "pip install 'apache-tvm==0.27.*', or use the passes of tvm_serenity.relay"
        )


def require_relay() -> None:
    """Raise :class:`MissingPartError` unless the Relay passes can run."""
    if not HAS_RELAY:
        raise MissingPartError(
            f"the Relay passes need a TVM up to 0.19, TVM {tvm.__version__} is installed, which "
            "has no Relay: scripts/install_relay_tvm.sh VENV makes an environment with one "
            "(docs/relay.md), or use the Relax passes of tvm_serenity"
        )
