#!/usr/bin/env python3
"""Runs 06_distributed on several ranks: the losses of one rank, a rank that is killed, a stop on request, and runs that go on from there.

  example_ranks.py FOLDER    the folder of the program
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

DIGITS = tools.ROOT / "examples/data"


def children_of(process):
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def losses(text):
    return [float(loss) for loss in re.findall(r"loss ([0-9.]+)", text)]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve() / "06_distributed"
    failures, checks = [], 0

    def expect(what, said, right):
        nonlocal checks
        checks += 1
        if not right:
            failures.append((what, said))

    def run(what, options, code, *texts):
        got, said = tools.run([program, "--data", DIGITS, *options])
        expect(what, f"exit code {got}\n{said}", got == code and all(text in said for text in texts))
        return said

    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "run.ckpt"
        options = ["--epochs", "4", "--threads", "1", "--mark", "0", "--double", "--checkpoint", file]

        def interrupted(what, signal_number, whom):
            """What a run says that gets a signal once it has saved."""
            job = subprocess.Popen([program, "--data", DIGITS, *options, "--ranks", "3", "--save-every", "1"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            while not file.exists() and job.poll() is None:
                time.sleep(0.002)
            for process in whom(job.pid):
                os.kill(process, signal_number)
            said, _ = job.communicate()
            expect(f"{what}: exit code {job.returncode}", said, job.returncode == 1 and file.exists())
            return said

        want = losses(run("one rank", options, 0, "over 1 ranks"))
        expect("the file of a run that has ended", "is there", not file.exists())
        said = run("4 ranks", [*options, "--ranks", "4"], 0, "over 4 ranks")
        expect("losses of 4 ranks", said, len(want) == 4 and all(abs(a - b) < 2e-6 for a, b in zip(losses(said), want)))

        said = interrupted("a killed rank", signal.SIGKILL, lambda job: children_of(job)[2:3])
        expect("a killed rank", said, "rank 2 was ended by signal 9" in said and said.count("rank 2 was lost") == 2 and "goes on from" in said)
        said = run("2 ranks after a killed one of 3", [*options, "--ranks", "2"], 0, "going on from", "over 2 ranks")
        expect("its last loss", said, abs(losses(said)[-1] - want[-1]) < 2e-6)

        said = interrupted("a stop on request", signal.SIGTERM, lambda job: children_of(job)[1:2])
        expect("a stop on request", said, "stopped; the same command goes on from" in said)
        run("the same ranks after a stop", [*options, "--ranks", "3"], 0, "going on from")

        file.write_text("no checkpoint")
        run("a file of something else", options, 1, f"{file}")
        expect("the file of something else", "was changed", file.read_text() == "no checkpoint")
        run("a batch that cannot be dealt out", [*options, "--ranks", "5"], 2, "--batch 48 cannot be dealt out to 5 ranks; give a multiple of 5")
        run("a batch larger than the training set", [*options, "--batch", "1438", "--ranks", "2"], 2,
            f"--batch 1438: there are only 1437 training samples in {DIGITS}; give a number up to that")
        run("an unknown option", ["--colour", "red"], 2, "unknown option --colour")
        run("a mark that is missed", ["--epochs", "1", "--checkpoint", Path(name) / "new"], 1, "distributed: the test accuracy is below 98.5 %")
    tools.report("example_ranks", failures, checks)


if __name__ == "__main__":
    main()
