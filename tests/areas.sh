#!/usr/bin/env bash
# Prints the suites of tests/live whose second tier `make test` runs, one a line: those of the files that have changed since the
# commit in the first line of tests/all-green, committed or not, by the table tests/areas.txt. All of them without that file, and
# where the clone lacks that commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# suites: those of the paths that it reads.
suites() {
    awk '
        FNR == NR { if (/^[^#]/) { prefix = $1; $1 = ""; table[prefix] = $0 }; next }
        {
            longest = ""
            for (prefix in table) if (index($0, prefix) == 1 && length(prefix) > length(longest)) longest = prefix
            if (longest != "") print table[longest]
        }
    ' tests/areas.txt - | tr -s ' ' '\n' | sort -u | grep -vx -e none -e '' || true
}

all() {
    grep -v '^#' tests/areas.txt | cut -s -d' ' -f2- | tr ' ' '\n' | sort -u | grep -vx -e all -e none
}

green=$(head -n 1 tests/all-green 2>/dev/null | grep -oE '[0-9a-f]{7,40}' | head -n 1) || true
if [[ -z "$green" ]] || ! git cat-file -e "$green^{commit}" 2>/dev/null; then
    all
    exit
fi
changed=$({ git diff --name-only --no-renames "$green" && git ls-files --others --exclude-standard; } | suites)
if grep -qx all <<<"$changed"; then
    all
elif [[ -n "$changed" ]]; then
    echo "$changed"
fi
