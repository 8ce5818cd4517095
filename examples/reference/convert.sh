#!/usr/bin/env bash
# examples/reference/convert.sh: bash examples/run.sh --example 11_onnx --model FILE.onnx [--size NAME=N]... [--threads N]
# Converts a model, compiles it with sinter::compiled, and compares it with ONNX Runtime. The header stays in build/onnx.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../tests/setup.sh"

model='' arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --model) model=${2:?--model needs a value}; shift ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
[ -f "$model" ] || fail 2 "there is no file $model"

python=python3
if ! python3 -c 'import onnx, onnxruntime' 2>/dev/null; then
  python=$here/build/onnx/python/bin/python
  if ! "$python" -c 'import onnx, onnxruntime' 2>/dev/null; then
    echo "installing onnx and onnxruntime in build/onnx" >&2
    python3 -c 'import ensurepip, venv' 2>/dev/null || apt_need python3-venv
    mkdir -p "$here/build/onnx"
    { python3 -m venv "$here/build/onnx/python" && "$python" -m pip install onnx onnxruntime; } >"$here/build/onnx/pip.log" 2>&1 || {
      tail -5 "$here/build/onnx/pip.log" >&2
      fail 1 "onnx and onnxruntime cannot be installed from PyPI"
    }
  fi
fi

configure default g++ examples -DSINTER_TESTS=OFF -DSINTER_EXAMPLES=ON
echo "building sinter::compiled in build/examples"
cmake --build "$here/build/examples" -j 2 --target sinter_compiled >"$here/build/examples/build.log" 2>&1 || {
  cat "$here/build/examples/build.log" >&2
  fail 1 "building failed"
}
flags="-DSINTER_COMPILED=1 $here/build/examples/libsinter_compiled.a"
while read -r option library; do
  if grep -q "^SINTER_WITH_$option:BOOL=ON" "$here/build/examples/CMakeCache.txt"; then flags="$flags -DSINTER_WITH_$option=1 -l$library"; fi
done <<<$'ZLIB z\nPNG png\nJPEG turbojpeg\nOPENSSL crypto'
"$python" "$here/cmake/onnx_to_sinter.py" "$model" --out "$here/build/onnx" --explain --check --flags "$flags" "${arguments[@]}"
