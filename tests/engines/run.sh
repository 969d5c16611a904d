#!/usr/bin/env bash
# Runs run.py where a hosts file and a loopback are its own: run.sh ENVIRONMENT ROLEGATE.
set -euo pipefail
hosts=$(mktemp)
trap 'rm -f "$hosts"' EXIT
# shellcheck disable=SC2016 # expanded within
unshare --user --map-root-user --mount --net bash -euc '
    mount --bind "$1" /etc/hosts
    ip link set lo up
    exec "$2" "$3" "$4"
' bash "$hosts" "$1/bin/python" "$(dirname "$0")/run.py" "$2"
