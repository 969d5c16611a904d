#!/usr/bin/env bash
# Installs PyTorch, and of vLLM, SGLang, their routers and Dynamo what parses a command line, into a virtual environment.
# pip's own configuration says from where: an index with PyTorch's builds for processors alone saves 5 GB.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
into=$1
[ -x "$into/bin/python" ] || "${PYTHON:-python3}" -m venv "$into"
pip() { "$into/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir "$@"; }
pip --requirement "$folder/imported.txt"
# Without dependencies: they would be another PyTorch, and kernels for GPUs.
pip --no-deps --requirement "$folder/engines.txt"
"$into/bin/pip" list --disable-pip-version-check | grep -iE '^(torch|ai-dynamo|ai-dynamo-runtime|vllm|vllm-router|sglang|sglang-router|transformers) '
