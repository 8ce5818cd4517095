#!/usr/bin/env bash
# tests/bench/models.sh: times a training step of each network of examples/models beside PyTorch; --help tells the options.
# A quick run: bash tests/bench/models.sh --networks alexnet_r --turns 3 --threads 1
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
has python3 || apt_need python3
exec python3 "$(dirname "${BASH_SOURCE[0]}")/models.py" "$@"
