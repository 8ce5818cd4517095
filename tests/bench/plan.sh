#!/usr/bin/env bash
# tests/bench/plan.sh: predicted steps beside measured ones, on threads with emulated links, then on MPI where it can be had.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: bash tests/bench/plan.sh [STEPS]

Measures STEPS (default: 5) steps for each number of ranks, and draws both in build/bench/plan.svg. Installs what is missing,
MPI as well, with apt-get, as root or with sudo. Exit code: 0; 1 if a prediction for emulated links is off by 10 % or more.
TEXT
}
case ${1:-5} in
  -h | --help) usage; exit 0 ;;
  *[!0-9]* | 0) echo "plan.sh: STEPS is a positive number, not '$1'" >&2; usage >&2; exit 2 ;;
esac

source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
install_missing "${CXX:-g++}" no
out=$here/build/bench
mkdir -p "$out"
flags=(-std=c++20 -O2 -march=native -I "$here/include" -isystem /usr/include/eigen3 "$here/tests/bench/plan.cpp" -pthread)
"${CXX:-g++}" "${flags[@]}" -o "$out/plan"
code=0
"$out/plan" "${1:-5}" "$out/plan.svg" || code=$?

if ! install_mpi; then
  echo "there is no MPI, and it cannot be installed: not compared with it" >&2
  exit $code
fi
mpicxx -DSINTER_WITH_MPI=1 "${flags[@]}" -o "$out/plan_mpi"
launch=(mpirun)
# MPICH knows none of these options.
if mpirun --version 2>/dev/null | grep -q "Open MPI"; then launch+=(--oversubscribe --bind-to none); fi
rm -f "$out/plan_samples.txt"
for ranks in 2 4 8; do
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "${launch[@]}" -n $ranks "$out/plan_mpi" "$out/plan_samples.txt"
done
exit $code
