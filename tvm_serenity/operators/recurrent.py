"""Recurrent layers over a sequence, whose states go from one run to the next."""

from tvm_serenity.operators.record import Operator

_RNN_STATE, _LSTM_STATES = 4, (18, 19)

OPERATORS = (
    Operator(kinds=("UNIDIRECTIONAL_SEQUENCE_RNN",), states=(_RNN_STATE,)),
    Operator(kinds=("UNIDIRECTIONAL_SEQUENCE_LSTM",), states=_LSTM_STATES),
)
