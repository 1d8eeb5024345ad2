"""Starts one rank's Python and waits for it: a small program that imports nothing of gradtape.

python supervisor.py RANK SIZE COMMAND ...

If the rank ends without a word, it says how, and waits a moment before it ends as well: the
launcher ends the other ranks as soon as it sees that, and they too are to say why.
"""

import os
import signal
import subprocess
import sys
import time

#: Names the file descriptor on which the rank says that its end is no surprise.
DONE = "GRADTAPE_DONE_FD"
#: Names the process that started all ranks of this host.
LAUNCHER = "GRADTAPE_LAUNCHER"
#: Seconds that the other ranks get to print what they know.
GRACE = 1.0
#: What launchers and schedulers send to the process that they started.
FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")


def main() -> int:
    rank, size, *command = sys.argv[1:]
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    environment = {**os.environ, DONE: str(writing), LAUNCHER: str(os.getppid())}
    # what the launcher opened for MPI is the rank's
    child = subprocess.Popen(command, env=environment, close_fds=False)
    os.close(writing)
    for name in FORWARDED:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, _: child.send_signal(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C comes to all of a terminal's processes
    code = child.wait()
    os.set_blocking(reading, False)
    try:
        done = os.read(reading, 1) != b""
    except BlockingIOError:  # a child of the rank lives, and has it open
        done = False
    if code < 0:
        say(rank, size, child.pid, f"was ended by signal {-code} ({named(-code)})")
    elif not done:
        said = f"ended with exit code {code}, by os._exit or in native code, before its script did"
        say(rank, size, child.pid, said)
    if code < 0 or not done:
        time.sleep(GRACE)
    return 128 - code if code < 0 else code or (not done)


def named(number: int) -> str:
    """Return a signal's name, with what it mostly means."""
    known = {
        "SIGKILL": "kill -9, or the system, which was out of memory",
        "SIGSEGV": "native code touched memory that is not its own",
        "SIGABRT": "native code gave up",
        "SIGBUS": "native code, or a full /dev/shm",
        "SIGFPE": "native code divided by zero",
        "SIGILL": "native code is made for another processor",
        "SIGXCPU": "its limit of processor time is used up",
    }
    try:
        name = signal.Signals(number).name
    except ValueError:
        return "unknown"
    return f"{name}: {known[name]}" if name in known else name


def say(rank: str, size: str, pid: int, what: str) -> None:
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "host")
    sys.stderr.write(f"[rank {rank} of {size} on {host}] process {pid} {what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    os._exit(main())  # at once: the launcher ends other ranks when it has seen this one end
