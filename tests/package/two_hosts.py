#!/usr/bin/env python3
"""Runs 06_distributed on two hosts: network namespaces, with a relay between them that delays what it passes on, and stops or closes.

  two_hosts.py FOLDER    the folder of the program; exit code 77 where namespaces are not permitted
"""
import ctypes
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

DIGITS = tools.ROOT / "examples/data"
SPACES = [f"sinter-{os.getpid()}-{rank}" for rank in (0, 1)]
FIRST, SECOND, PORT, DELAY = "10.213.9.9", "10.213.9.2", 29500, 0.0005


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def set_up():
    """Two hosts. Rank 1 finds the relay where it looks for rank 0. None, or what is not permitted."""
    cable = f"sin{os.getpid() % 1000000}"
    first, second = SPACES
    for words in (["netns", "add", first], ["netns", "add", second], ["-n", first, "link", "set", "lo", "up"],
                  ["-n", first, "addr", "add", f"{FIRST}/32", "dev", "lo"], ["-n", second, "link", "set", "lo", "up"],
                  ["link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", second], ["addr", "add", f"{FIRST}/24", "dev", cable],
                  ["link", "set", cable, "up"], ["-n", second, "addr", "add", f"{SECOND}/24", "dev", "eth0"],
                  ["-n", second, "link", "set", "eth0", "up"]):
        done = ip(*words)
        if done.returncode != 0:
            return f"ip {' '.join(words)}: {done.stdout.strip()}"
    return None


def connect_in(space, address):
    """A connection that begins in a namespace; a socket stays in the one where it was made. Waits until someone listens."""
    made = []

    def work():
        with open(f"/run/netns/{space}", encoding="ascii") as handle:
            if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), 0x40000000) != 0:  # of this thread alone
                return
        while not made and time.monotonic() < end:
            try:
                made.append(socket.create_connection(address))
            except ConnectionRefusedError:
                time.sleep(0.05)

    end = time.monotonic() + 60
    one = threading.Thread(target=work)
    one.start()
    one.join()
    return made[0]


class Relay:
    """Passes on what rank 1 sends to rank 0, and back, each piece a little later, until its state is silent or closed."""

    def __init__(self):
        self.state, self.passed, self.ends = "open", 0, []
        self.listener = socket.create_server((FIRST, PORT))
        self.accepts = threading.Thread(target=self.accept, daemon=True)
        self.accepts.start()

    def accept(self):
        while True:
            try:
                pair = [self.listener.accept()[0]]
            except OSError:
                return
            pair.append(connect_in(SPACES[0], (FIRST, PORT)))
            self.ends += pair
            for one, other in (pair, pair[::-1]):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.pass_on, args=(one, other), daemon=True).start()

    def pass_on(self, one, other):
        try:
            while data := one.recv(1 << 16):
                time.sleep(DELAY)
                if self.state == "silent":
                    return
                self.passed += len(data)
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:  # closed
            pass

    def disturb(self, how):
        self.state = how
        if how == "closed":
            self.end()

    def end(self):
        for one in [*self.ends, self.listener]:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.accepts.join()
        self.listener.close()


def train(program, checkpoint, options, disturb=None):
    """(exit codes, texts) of both ranks."""
    relay = Relay()
    jobs = []
    for rank, space in enumerate(SPACES):
        environment = {**os.environ, "SINTER_RANK": str(rank), "SINTER_SIZE": "2", "SINTER_COMM_SECRET": "of the test " * 4,
                       "SINTER_ADDRESS": f"{FIRST}:{PORT}", "SINTER_LISTEN": SECOND if rank else ""}
        words = ["ip", "netns", "exec", space, program, "--data", DIGITS, "--threads", "1", "--mark", "0", "--double", "--checkpoint", checkpoint,
                 *options]
        jobs.append(subprocess.Popen([str(word) for word in words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True))
    if disturb:
        while relay.passed < 1_000_000 and all(job.poll() is None for job in jobs):
            time.sleep(0.005)
        relay.disturb(disturb)
    said = [job.communicate()[0] for job in jobs]
    relay.end()
    return [job.returncode for job in jobs], said


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve() / "06_distributed"
    failures, checks = [], 0
    try:
        trouble = set_up()
        if trouble:
            print(f"two_hosts: nothing was run, as network namespaces are not permitted: {trouble}")
            sys.exit(77)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)

            def expect(what, right, said):
                nonlocal checks
                checks += 1
                if not right:
                    failures.append((what, "\n".join(map(str, said))))

            losses = lambda text: re.findall(r"loss ([0-9.]+)", text)
            _, alone = tools.run([program, "--data", DIGITS, "--epochs", "2", "--mark", "0", "--double", "--checkpoint", folder / "one"])
            codes, said = train(program, folder / "two", ["--epochs", "2"])
            expect("the losses of one rank", codes == [0, 0] and len(losses(alone)) == 2 and losses(said[0]) == losses(alone), [codes, *said, alone])
            codes, said = train(program, folder / "silent", ["--epochs", "1000", "--timeout", "5"], "silent")
            expect("a network that is silent", codes == [1, 1] and "waited for rank 1 in vain" in said[0] and "waited for rank 0 in vain" in said[1],
                   [codes, *said])
            codes, said = train(program, folder / "closed", ["--epochs", "1000"], "closed")
            expect("a network that closes", codes == [1, 1] and "rank 1 was lost" in said[0] and "rank 0 was lost" in said[1], [codes, *said])
    finally:
        for space in SPACES:
            ip("netns", "del", space)
    tools.report("two_hosts", failures, checks)


if __name__ == "__main__":
    main()
