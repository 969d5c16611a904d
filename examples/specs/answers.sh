#!/usr/bin/env bash
# Writes what rolegate answers for the specs in groups/ into a folder: answers.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "$1"
rolegate check groups -o json >"$1/check.json"
rolegate plan groups -o json >"$1/plan.json"
rolegate mutate groups -o yaml >"$1/pods.yaml"
rolegate fit groups --with clusters -o json >"$1/fit.json"
