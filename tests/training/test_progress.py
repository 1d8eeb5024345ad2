"""What fit shows: a line that fits a terminal, plain text in a log, HTML in a notebook."""

from __future__ import annotations

import io
import re
import sys
import types
from contextlib import redirect_stderr
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import fit
from gradtape.training.runs import epochs as progress

X = np.ones((20, 3), "float32")
LOGS = {"loss": 0.123456, "accuracy": 0.98765, "val_loss": 0.2, "val_accuracy": 0.951}
MANY = {
    f"{part}{name}": 0.5 for part in ("", "val_") for name in ("loss", *map("m{}".format, range(9)))
}


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def run(**options: Any) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(2)])
    data = (X, np.arange(20) % 2)
    fit(model, data, epochs=2, batch_size=5, validation_split=0.5, **options)


def plain(text: str) -> str:
    return re.sub("\x1b\\[\\d+m", "", text)


@pytest.fixture
def terminal(monkeypatch: Any) -> Terminal:
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def test_lines_of_a_terminal_fit_it_and_end_with_all_values(terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        run()
    shown = terminal.getvalue()
    assert "\x1b[" in shown
    lines = plain(shown).rstrip("\n").split("\n")
    pictures = [picture for line in lines for picture in line.split("\r")]
    assert all(len(picture) <= 79 for picture in pictures)
    assert any("━" in picture and "left" in picture for picture in pictures)
    ends = [line.rpartition("\r")[2] for line in lines]
    assert len(ends) == 2
    for i, line in enumerate(ends, 1):
        assert line.startswith(f"epoch {i}/2  ")
        assert all(f" {name} " in line for name in LOGS)


def test_the_end_of_a_line_rather_lacks_the_time_than_the_third_digit(terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        for epochs in (9, 100):
            with progress.Progress(25 if epochs == 100 else 2, epochs, 7) as shown:
                shown.end(LOGS)
    lines = plain(terminal.getvalue()).rstrip("\n").split("\n")
    short, long = [line.rpartition("\r")[2] for line in lines]
    assert short.startswith("epoch 3/9  0.0s  loss 0.123  accuracy 0.988  val_loss 0.200")
    assert long.rstrip().endswith("loss 0.123  accuracy 0.988  val_loss 0.200  val_accuracy 0.951")
    assert long.startswith("epoch  26/100  loss")


def test_colour_is_left_out_where_nobody_wants_it(terminal: Terminal, monkeypatch: Any) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stderr(terminal):
        run()
    assert "━" in terminal.getvalue()
    assert "\x1b" not in terminal.getvalue()


def test_a_log_has_a_line_for_each_epoch(capsys: Any) -> None:
    run()
    lines = capsys.readouterr().err.splitlines()
    assert [line[:9] for line in lines] == ["epoch 1/2", "epoch 2/2"]
    assert all(re.search(r"loss \d\.\d{4}  .*val_loss \d\.\d{4}", line) for line in lines)
    run(verbose=2)
    assert len(capsys.readouterr().err.splitlines()) == 2
    run(verbose=0)
    run(verbose=False)
    shown = capsys.readouterr()
    assert shown.err == shown.out == ""


@pytest.mark.parametrize(
    ("logs", "room", "expected"),
    [
        (LOGS, 80, "  loss 0.1235  accuracy 0.9877  val_loss 0.2000  val_accuracy 0.9510"),
        (LOGS, 66, "  loss 0.123  accuracy 0.988  val_loss 0.200  val_accuracy 0.951"),
        (LOGS, 60, "  loss 0.12  accuracy 0.99  val_loss 0.20  val_accuracy 0.95"),
        (LOGS, 50, "  loss 0.123  accuracy 0.988  val_loss 0.200 ..."),
        (LOGS, 36, "  loss 0.123  val_loss 0.200 ..."),
        (LOGS, 5, ""),
        ({"loss": 1.5e-7, "mse": 3e9}, 80, "  loss 1.500e-07  mse 3.000e+09"),
        ({"loss": float("nan")}, 80, "  loss nan"),
    ],
)
def test_values_that_do_not_fit(logs: Any, room: int, expected: str) -> None:
    assert progress.line_of("", logs, room) == expected


def test_the_losses_are_shown_however_many_values_there_are() -> None:
    line = progress.line_of("epoch 1/9", MANY, 79)
    assert len(line) <= 79
    assert "loss 0.500" in line
    assert "val_loss 0.500" in line
    assert line.endswith(" ...")


def test_a_notebook_gets_html(monkeypatch: Any, capsys: Any) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, html: str) -> None:
            shown.append(html)

    display = types.ModuleType("IPython.display")
    display.HTML = lambda text: text  # type: ignore[attr-defined]
    display.display = lambda html, display_id: Handle()  # type: ignore[attr-defined]
    package = types.ModuleType("IPython")
    package.get_ipython = lambda: types.SimpleNamespace(kernel=1)  # type: ignore[attr-defined]
    package.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    run()
    assert capsys.readouterr().err == ""
    assert shown[-1].startswith("<table>")
    assert "<progress value=" in shown[0]
    assert "val_loss <b>" in shown[-1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0s"), (9.5, "9.5s"), (59.2, "59s"), (75, "1m15s"), (3720, "1h02m")],
)
def test_times(seconds: float, text: str) -> None:
    assert progress._time(seconds) == text
