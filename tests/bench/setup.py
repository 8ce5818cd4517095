"""tests/bench/setup.py: what a benchmark in Python asks tests/bench/setup.sh to install."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

RIVAL_HELP = "install PyTorch from PyPI in build/torch first, and time that one; nothing else of the system sees it"


def install(compiler="g++", rival=False, eigen="/usr/include/eigen3"):
    """Installs what is missing, PyTorch as well if `rival` is set, and Eigen where that folder has none. The Python to time PyTorch
    with. Ends the program where something cannot be installed."""
    # nvcc comes with the CUDA toolkit; it compiles for the processor by g++.
    host = "g++" if Path(compiler).name == "nvcc" else compiler
    command = ["bash", Path(__file__).with_suffix(".sh"), "--compiler", host, *["--install-rival"] * rival]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "CPATH": eigen})
    if done.returncode != 0:
        sys.exit(done.returncode)
    if shutil.which("ninja"):  # there may be no make, which CMake takes otherwise
        os.environ.setdefault("CMAKE_GENERATOR", "Ninja")
    return done.stdout.strip()
