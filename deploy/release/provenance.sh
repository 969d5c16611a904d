#!/usr/bin/env bash
# Says what a folder of a release was built from, and how: provenance.sh FOLDER COMMIT PROFILE ARCH... prints an in-toto statement
# with SLSA's predicate. It says nothing that another build of the same commit would say otherwise: not when, where or by whom;
# whoever signs it vouches for that.
set -euo pipefail
folder=${1:?provenance.sh FOLDER COMMIT PROFILE ARCH...}
commit=${2:?}
profile=${3:?}
shift 3
export LC_ALL=C

list() {
    local separator='' item
    for item in "$@"; do
        printf '%s%s' "$separator" "$item"
        separator=,
    done
}

subjects=()
for file in "$folder"/*; do
    name=${file##*/}
    case $name in
    SHA256SUMS | *.intoto.json) continue ;;
    esac
    sum=$(sha256sum -- "$file")
    subjects+=("{\"name\":\"$name\",\"digest\":{\"sha256\":\"${sum%% *}\"}}")
done
archs=("${@/#/\"}")
archs=("${archs[@]/%/\"}")

cat <<JSON
{"_type":"https://in-toto.io/Statement/v1",
"subject":[$(list "${subjects[@]}")],
"predicateType":"https://slsa.dev/provenance/v1",
"predicate":{"buildDefinition":{"buildType":"https://rolegate.dev/release/v1",
"externalParameters":{"command":"deploy/release/build.sh","profile":"$profile","architectures":[$(list "${archs[@]}")]},
"resolvedDependencies":[{"name":"rolegate","digest":{"gitCommit":"$commit"}}]},
"runDetails":{"builder":{"id":"https://rolegate.dev/release/make"}}}}
JSON
