"""Fails on one rank, in the way that the arguments name: ``failing.py WAY RANK``."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import numpy as np

import gradtape as gt


def fail(way: str) -> None:
    """Fail as told."""
    if way == "exception":
        raise ValueError("x is wrong")
    if way == "thread":
        threading.Thread(target=lambda: 1 / 0).start()
        time.sleep(5)
    elif way == "interrupt":
        raise KeyboardInterrupt
    elif way.startswith("exit"):
        sys.exit(int(way[4:]))
    elif way.startswith("_exit"):
        os._exit(int(way[5:]))
    elif way == "sleep":
        time.sleep(60)
    elif way == "abort":
        gt.distributed.abort("the data are gone", 5)
    elif way == "another":
        gt.distributed.group().all_reduce(np.ones(3))
    elif way != "nothing":
        os.kill(os.getpid(), getattr(signal, way))


def main(way: str, which: int) -> None:
    """Sum over the ranks a few times, and fail in the middle."""
    group = gt.distributed.init(timeout=0.7 if way == "sleep" else None)
    x = gt.constant(np.ones(10, "float32"))
    w = gt.Variable(1.0)

    @group.data_parallel
    def step(x):
        with gt.GradientTape() as tape:
            loss = gt.mean(w * x)
        tape.gradient(loss, w)
        return loss

    with group.step("all sums", 0.7 if way == "SIGSTOP" else None):
        for i in range(10):
            with group.step(f"sum {i}"):  # which keeps the time
                x = group.all_reduce(x, "mean") if way != "another" else step(x)[None]
            if i == 4 and which in (group.rank, -1):
                fail(way)
    print(f"rank {group.rank} came to the end", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
