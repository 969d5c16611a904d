#!/usr/bin/env bash
# Builds and runs the tests: all.sh [--all] [THREADS]
#
# Each target that is run must end with a `test result:` line of its own, and must have run as many tests as it lists. Without
# --all, tests of the second tier (`tier2::` in their names) run for the areas that changed, for at most ten minutes. With
# --all, everything runs; each suite that passes is noted in target/tests/passed, so that a second call goes on from there, and
# the last one writes tests/all-green.
#
# Folder target/tests: a log and a ledger for each suite (tests/common/ledger.rs).
set -euo pipefail
cd "$(dirname "$0")/.."

all=
if [[ ${1-} == --all ]]; then
    all=1
    shift
fi
threads=${1:-4}
# Minutes for tests of the second tier.
cap=10
# The API servers of the tests are short of processors, not of memory: below 1.5 GiB each they collect little garbage.
export GOGC="${GOGC:-800}" GOMEMLIMIT="${GOMEMLIMIT:-1500MiB}"
out=$PWD/target/tests
passed=$out/passed
mkdir -p "$passed"
rm -f "$out"/*.log "$out"/*.tsv "$out"/*.ledger
began=$(date +%s)
faults=() notes=()

say() { echo "tests: $*"; }

# measure NAME COMMAND...: runs it, and notes its seconds by the clock and of processors.
measure() {
    local name=$1 status=0 TIMEFORMAT='%R %U %S' real user system orphaned
    shift
    export ROLEGATE_LEDGER=$out/$name.ledger
    { time "$@" 2>&3; } 3>&2 2>"$out/$name.time" || status=$?
    read -r real user system < <(tail -n 1 "$out/$name.time")
    orphaned=0
    if [[ -f $ROLEGATE_LEDGER ]]; then
        # Control planes that nobody waited for write what they took before they give up this lock.
        orphaned=$(flock "$ROLEGATE_LEDGER" awk -F'\t' '$2 == "orphaned" { sum += $3 } END { print sum + 0 }' "$ROLEGATE_LEDGER")
    fi
    awk -v name="$name" -v real="$real" -v processors="$user $system $orphaned" \
        'BEGIN { split(processors, p, " "); printf "%s\t%.1f\t%.1f\n", name, real, p[1] + p[2] + p[3] }' >>"$out/costs.tsv"
    return $status
}

# build NAME TARGET...: has make build it.
build() {
    local name=$1
    shift
    measure "$name" make --no-print-directory -j2 "$@" || { report; exit 1; }
}

# The program of each target of tests, with its folder: `live PATH FOLDER`.
declare -A program folder
targets=()
programs() {
    local line path name
    while read -r line; do
        path=${line##*(}
        path=$PWD/${path%)}
        name=$(basename "$path")
        name=${name%-*}
        targets+=("$name")
        program[$name]=$path
        folder[$name]=$PWD
        [[ $name != rolegate_core ]] || folder[$name]=$PWD/src/core
    done < <(make --no-print-directory unit-programs 2>&1 | grep '^ *Executable ')
    [[ ${#targets[@]} -gt 0 ]] || { say "no tests were built"; exit 1; }
}

# run NAME TARGET ARGUMENTS...: runs these tests of a target, and compares what ran with what is listed.
run() {
    local name=$1 target=$2 listed result ran ignored failed status=0 log
    shift 2
    log=$out/$name.log
    say "$name"
    listed=$(cd "${folder[$target]}" && "${program[$target]}" --list --format terse "$@" | grep -c ': test$' || :)
    # The same as `cargo test` would set; libtest tells the seconds of a test to nightly only.
    measure "$name" env -C "${folder[$target]}" CARGO_MANIFEST_DIR="${folder[$target]}" RUSTC_BOOTSTRAP=1 \
        "${program[$target]}" -Zunstable-options --report-time --test-threads="$threads" "$@" > >(tee "$log") || status=$?
    wait $! || :
    result=$(tail -n 5 "$log" | grep '^test result: ' || :)
    ran=$(awk '{ print $4 + $6 + $8 }' <<<"$result")
    ignored=$(awk '{ print $8 + 0 }' <<<"$result")
    if [[ -z $result || $ran -ne $listed ]]; then
        faults+=("$name: ${ran:-0} of $listed tests ran to their end")
        return 1
    fi
    mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED.*$/\1/p' "$log")
    printf '%s\t%d\t%d\n' "$name" "$((ran - ignored))" "$ignored" >>"$out/counts.tsv"
    if [[ $status -ne 0 ]]; then
        faults+=("$name: failed: ${failed[*]:-see $log}")
        return 1
    fi
}

# names TARGET PATTERN: the names of tests that match.
names() { (cd "${folder[$1]}" && "${program[$1]}" --list --format terse) | sed -n 's/: test$//p' | grep -E "$2" || :; }

# Runs tests of the second tier, of the areas that changed, twelve at a time as long as there is time.
second_tier() {
    local areas tests=() left=() ends at=0
    mapfile -t areas < <(tests/areas.sh)
    [[ ${#areas[@]} -gt 0 ]] || { say "no area changed: no tests of the second tier"; return 0; }
    mapfile -t tests < <(names live "^($(IFS='|'; echo "${areas[*]}"))::(.*::)?tier2::")
    ends=$(($(date +%s) + cap * 60))
    while [[ $at -lt ${#tests[@]} && $(date +%s) -lt $ends ]]; do
        run "tier2-$at" live --exact "${tests[@]:at:12}" || :
        at=$((at + 12))
    done
    left=("${tests[@]:at}")
    notes+=("second tier, areas ${areas[*]}: $((${#tests[@]} - ${#left[@]})) of ${#tests[@]} tests run in $cap minutes")
    [[ ${#left[@]} -eq 0 ]] ||
        notes+=("left to make test-all: $(printf '%s\n' "${left[@]}" | sed 's/::.*//' | uniq -c | awk '{ printf "%s%d of %s", sep, $1, $2; sep = ", " }')")
}

# Runs all tests of a suite unless they have passed with the same tree.
suite() {
    local name=$1 tree
    tree=$(git rev-parse HEAD; git diff HEAD | sha256sum)
    if [[ $(cat "$passed/$name" 2>/dev/null) == "$tree" ]]; then
        say "$name has passed"
        return 0
    fi
    run "$@" || return 0
    echo "$tree" >"$passed/$name"
    grep -P "^$name\t" "$out/counts.tsv" >"$passed/$name.count"
}

report() {
    local minutes processors
    minutes=$((($(date +%s) - began + 30) / 60))
    echo
    awk -f tests/ledger.awk "$out"/costs.tsv "$out"/*.log "$out"/*.ledger
    processors=$(awk -F'\t' '{ sum += $3 } END { printf "%.0f", sum / 60 }' "$out/costs.tsv")
    echo "$minutes minutes by the clock, $processors minutes of processors"
    [[ ${#notes[@]} -eq 0 ]] || printf '%s\n' "${notes[@]}"
    [[ ${#faults[@]} -eq 0 ]] || printf 'FAILED: %s\n' "${faults[@]}"
}

build build rig fmt unit-programs addons tools
skip=()
for need in browser valgrind; do
    tests/needs.sh $need && continue
    [[ -z ${CI-} ]] || { say "$need is missing: its tests did not run"; exit 1; }
    notes+=("NOT RUN, for want of $need")
    [[ $need != browser ]] || skip=(--skip page::drawn)
done
programs
for target in "${targets[@]}"; do
    if [[ $target != live ]]; then
        if [[ -n $all ]]; then suite "$target" "$target"; else run "$target" "$target" || :; fi
    elif [[ -z $all ]]; then
        run live live --skip tier2:: "${skip[@]}" || :
        second_tier
    else
        for area in $(names live . | sed 's/::.*//' | sort -u); do
            mapfile -t tests < <(names live "^$area::")
            suite "live-$area" live --exact "${tests[@]}"
        done
    fi
done
report
if [[ ${#faults[@]} -gt 0 ]]; then
    exit 1
elif [[ -n $all ]]; then
    { git rev-parse HEAD; cat "$passed"/*.count; echo "$((($(date +%s) - began + 30) / 60)) minutes by the clock"; } >tests/all-green
    say "all passed: commit tests/all-green"
fi
