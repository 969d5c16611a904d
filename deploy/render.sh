#!/usr/bin/env bash
# Prints what the chart writes by hand, with values that stand for those of an installation: `rolegate manifests` writes others in their
# place (src/cli/manifests/rendered.rs). What comes from the program's tables is left out: the program prints that itself.
#
# usage: deploy/render.sh HELM
set -euo pipefail
helm=$(realpath "$1")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r chart "$work/"
rm -rf "$work/chart/generated"
grep -rlE --include='*.yaml' '"rolegate\.(role|policy|file|generated)"|generated/' "$work/chart/templates" | xargs rm
echo '# Written by `make docs`: deploy/chart, with values that stand for those of an installation.'
HELM_PLUGINS=/nonexistent HELM_CACHE_HOME=$work HELM_CONFIG_HOME=$work HELM_DATA_HOME=$work \
    "$helm" template rolegate "$work/chart" --namespace namespace-of-rolegate \
    --set fullnameOverride=name-of-rolegate,image.repository=image-of-rolegate,image.tag=tag \
    --set certificates=cert-manager,serviceMonitor=true,commonLabels.label-of-rolegate=any \
    --set webhookPort=10001,adminPort=10002,priorityClassName=system-class-of-rolegate,test.tryIn=namespace-to-try
