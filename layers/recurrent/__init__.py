"""Recurrent layers, and their cells."""

from __future__ import annotations

from .cells import GRUCell, LSTMCell, SimpleRNNCell
from .gated import GRU, LSTM, SimpleRNN
from .rnn import RNN, StackedRNNCells
from .wrappers import Bidirectional, TimeDistributed

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Bidirectional",
    "GRUCell",
    "LSTMCell",
    "SimpleRNN",
    "SimpleRNNCell",
    "StackedRNNCells",
    "TimeDistributed",
]
