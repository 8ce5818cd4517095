#!/usr/bin/env bash
# examples/python/run.sh [PYTHON]: builds the module for a Python that has nanobind and numpy, by default one in build/python, and uses it.
set -euo pipefail
example=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$example/../../tests/setup.sh"
mkdir -p "$here/build"
install_missing g++ no
python=${1:-}
if [ -z "$python" ]; then
  python=$here/build/python/bin/python
  if ! "$python" -c "import nanobind, numpy" 2>/dev/null; then
    python3 -m venv "$here/build/python" && "$python" -m pip install --quiet nanobind numpy ||
      fail 77 "no nanobind and numpy from PyPI; name a Python that has both"
  fi
fi
cmake -S "$example" -B "$here/build/python_example" -DSINTER_SOURCE="$here" -DSINTER_TESTS=OFF -DSINTER_EXAMPLES=OFF -DPython_EXECUTABLE="$(realpath -s "$python")"
cmake --build "$here/build/python_example" -j 2
PYTHONPATH=$here/build/python_example "$python" "$example/use.py"
