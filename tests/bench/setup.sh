#!/usr/bin/env bash
# tests/bench/setup.sh: installs what the benchmarks need: sourced by those in bash, run by those in Python (setup.py).

source "$(dirname "${BASH_SOURCE[0]}")/../setup.sh"
torch=2.15.0
rival=$here/build/torch

# The Python with PyTorch that install_rival has made, or else python3, which may have PyTorch, too.
rival_python() {
  if [ -x "$rival/bin/python" ]; then echo "$rival/bin/python"; else echo python3; fi
}

# Installs PyTorch in a virtual environment of its own, if it is not there.
install_rival() {
  "$rival/bin/python" -c "import torch; exit(torch.__version__.split('+')[0] != '$torch')" 2>/dev/null && return
  has python3 || apt_need python3
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_need python3-venv
  echo "installing PyTorch $torch in build/torch; what pip says is in build/torch.log" >&2
  { rm -rf "$rival" && python3 -m venv "$rival" && "$rival/bin/python" -m pip install "torch==$torch"; } >"$here/build/torch.log" 2>&1 || {
    tail -5 "$here/build/torch.log" >&2
    rm -rf "$rival"
    fail 1 "PyTorch $torch could not be installed. Is this machine online, and has it 7 GB of free disk?"
  }
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -euo pipefail
  usage() {
    cat <<TEXT
Usage: bash tests/bench/setup.sh [--compiler PROGRAM] [--install-rival]

Installs what the benchmarks need, with apt-get, as root or with sudo: compiler (default: g++), CMake, Eigen, Python. With
--install-rival PyTorch $torch from PyPI, too, in build/torch, where nothing else of the system sees it. Prints the Python
to time PyTorch with: that one, if it is there, else python3.
TEXT
  }
  compiler=g++ with_rival=no
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) usage; exit 0 ;;
      --install-rival) with_rival=yes ;;
      --compiler)
        [ $# -ge 2 ] || { echo "setup.sh: $1 needs a value" >&2; exit 2; }
        compiler=$2
        shift ;;
      *) echo "setup.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
    esac
    shift
  done
  install_missing "$compiler" no
  [ "$with_rival" = no ] || install_rival
  rival_python
fi
