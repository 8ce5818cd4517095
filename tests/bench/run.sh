#!/usr/bin/env bash
# tests/bench/run.sh: times Sinter beside Eigen, a hand-written loop and, where there is one, PyTorch, in turns.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: bash tests/bench/run.sh [options]

  --python PROGRAM   a Python with PyTorch, the rival, which is left out if it has none (default: that of build/torch, if
                     it is there, else python3)
  --install-rival    install PyTorch from PyPI in build/torch first, and time that one; nothing else of the system sees it
  --turns N          turns in which both sides of each ratio run once, 2 or more (default: 21)
  --threads LIST     thread counts (default: "1 2")
  -h, --help         this text

Installs what is missing, with apt-get, as root or with sudo. Prints one table per thread count: milliseconds, and the
ratios that matter, medians of those of the single turns.
TEXT
}

python= with_rival=no turns=21 threads="1 2"
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --install-rival) with_rival=yes ;;
    --python | --turns | --threads)
      [ $# -ge 2 ] || { echo "run.sh: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    *) echo "run.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
install_missing "${CXX:-g++}" no
[ "$with_rival" = no ] || install_rival
python=${python:-$(rival_python)}
out=$here/build/bench
mkdir -p "$out"
eigen="-isystem /usr/include/eigen3"
for program in elementwise mlp; do
  # shellcheck disable=SC2086
  ${CXX:-g++} -std=c++20 -O2 -march=native -I "$here/include" $eigen "$here/tests/bench/$program.cpp" -o "$out/$program" -pthread
done
rivals=()
if "$python" -c 'import torch' 2>/dev/null; then
  rivals=("$(printf "%q %q" "$python" "$here/tests/bench/rival_torch.py")")
else
  echo "no PyTorch in $python: its rows and the ratios to them are left out" >&2
fi

for t in $threads; do
  echo "threads: $t"
  python3 "$here/tests/bench/turns.py" "$turns" "$(printf %q "$out/elementwise") $t" "$(printf %q "$out/mlp") $t" "${rivals[@]/%/ $t}"
done
