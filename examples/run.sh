#!/usr/bin/env bash
# examples/run.sh: installs what is missing, builds, and runs an example, by default one that reads handwritten digits.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: bash examples/run.sh [options] [--] [options of the example]

Installs what is missing (with apt-get, as root or with sudo), builds in build/, and trains a network on the
handwritten digits that are in this repository.

  --example NAME   run another example; default: 01_digits
                     00_spirals       the program of the README
                     02_expressions   what expressions are
                     03_convnet       a convolutional network on the same digits, or on MNIST
                     04_cifar         a residual network on CIFAR-10, or on synthetic pictures
                     05_devices       one network on several devices in six ways
                     06_distributed   one network on several ranks, with --ranks N: by mpirun, with MPI, which is
                                      installed where it is missing; with --sockets as well, without MPI
                     07_plan          measures one rank, and predicts the step on 1 to 4096 ranks
                     08_chars         an LSTM that reads a text letter by letter, and writes
                     09_gpt           a small GPT that does the same, stops and goes on
                     10_embed         a trained BERT that turns sentences into vectors, and tells which are alike
                     11_onnx          a network that PyTorch trained, as C++; with --model FILE.onnx converts that one,
                                      compiles it and compares it with ONNX Runtime (from PyPI, in build/onnx)
  --list           the examples there are
  -j JOBS          compile jobs (default: 2)
  -h, --help       this text, then the options of the example

Everything else, such as --epochs 5 or --device cpu, goes to the example. With --device cuda it is built by nvcc, which
must be there, and runs on the first GPU.
Exit code: that of the example (not 0 if it misses its accuracy); 1 if it could not be built; 2 for a wrong option.
TEXT
}

example=01_digits jobs=2 list=no help=no ranks='' sockets=no arguments=()
wrong() {
  echo "run.sh: $1" >&2
  usage >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) help=yes ;;
    --list) list=yes ;;
    --example | -j | --ranks)
      [ $# -ge 2 ] || wrong "$1 needs a value"
      case $1 in
        -j) jobs=$2 ;;
        --ranks) ranks=$2 ;;
        *) example=$2 ;;
      esac
      shift ;;
    --sockets) sockets=yes ;;
    -j*) jobs=${1#-j} ;;
    --) shift; arguments+=("$@"); break ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || wrong "-j needs a positive number, not '$jobs'"

examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && ls [0-9][0-9]_*.cpp 2>/dev/null | sed 's/\.cpp$//')
if [ "$list" = yes ]; then
  echo "$examples"
  exit 0
fi
example=${example%.cpp}
grep -qx -- "$example" <<<"$examples" || wrong "there is no example '$example'; the examples are: ${examples//$'\n'/, }"

if [ "$example" != 06_distributed ]; then
  [ -z "$ranks" ] && [ "$sockets" = no ] || wrong "--ranks and --sockets are for --example 06_distributed"
elif [ -n "$ranks" ]; then
  [[ $ranks =~ ^[1-9][0-9]*$ ]] || wrong "--ranks needs a positive number, not '$ranks'"
fi

if [ "$help" = yes ]; then
  usage
  program=$(dirname "${BASH_SOURCE[0]}")/../build/examples/examples/$example
  if [ -x "$program" ]; then
    echo
    "$program" --help
  fi
  exit 0
fi

source "$(dirname "${BASH_SOURCE[0]}")/../tests/setup.sh"
install_missing g++ no
if [[ " ${arguments[*]} " =~ \ --device\ cuda ]]; then
  PATH=$PATH:/usr/local/cuda/bin
  has nvcc || fail 1 "--device cuda needs nvcc, the compiler of the CUDA toolkit, which is not there"
  mkdir -p "$here/build/cuda"
  program=$here/build/cuda/$example
  echo "building $example with nvcc in build/cuda"
  if [ -n "$(find "$here/include" "$here/examples" \( -name '*.hpp' -o -name "$example.cpp" \) -newer "$program" 2>/dev/null)" ] || [ ! -x "$program" ]; then
    nvcc -std=c++20 --expt-relaxed-constexpr -O3 -arch="${SINTER_CUDA_ARCH:-native}" -Xcompiler -march=native -I "$here/include" \
      -isystem /usr/include/eigen3 -x cu "$here/examples/$example.cpp" -o "$program" -lcublasLt >"$here/build/cuda/build.log" 2>&1 || {
      cat "$here/build/cuda/build.log" >&2
      fail 1 "building failed"
    }
  fi
  exec "$program" "${arguments[@]}"
fi
if [ "$example" = 11_onnx ] && [[ " ${arguments[*]} " =~ \ --model\  ]]; then
  exec bash "$here/examples/reference/convert.sh" "${arguments[@]}"
fi
# A folder of its own, so that it neither needs Catch2 nor changes what tests/run.sh configured.
folder=examples mpi=OFF launch=()
if [ "$example" = 06_distributed ] && [ "$sockets" = no ]; then
  if install_mpi; then
    folder=examples_mpi mpi=ON launch=(mpirun -n "${ranks:-1}")
    if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
      launch+=(--oversubscribe --bind-to none)
      export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
  else
    echo "there is no MPI, and it cannot be installed: the ranks are joined by sockets"
  fi
fi
[ "$mpi" = ON ] || [ -z "$ranks" ] || arguments=(--ranks "$ranks" "${arguments[@]}")
configure default g++ "$folder" -DSINTER_TESTS=OFF -DSINTER_EXAMPLES=ON "-DSINTER_WITH_MPI=$mpi"
echo "building $example in build/$folder"
log=$here/build/$folder/build.log
cmake --build "$here/build/$folder" -j "$jobs" --target "$example" >"$log" 2>&1 || {
  cat "$log" >&2
  fail 1 "building failed"
}
exec "${launch[@]}" "$here/build/$folder/examples/$example" "${arguments[@]}"
