#!/bin/bash
# Smoke test of the control plane and of its extras. Builds what is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bin=${1:-$here/../../target/controlplane/bin}
"$here/build.sh" all "$bin"

work=$(mktemp -d)
mkfifo "$work/in"
"$bin/rig" up --dir "$work/cluster" --with kwok,cert-manager,lws --audit --until-stdin-closes \
	<"$work/in" >"$work/out" 2>"$work/err" &
rig=$!
exec 3>"$work/in"
finish() {
	code=$?
	exec 3>&-
	if [ $code -ne 0 ]; then
		echo "smoke: FAILED; rig said:" >&2
		cat "$work/err" "$work/out" >&2
	fi
	wait $rig || :
	rm -rf "$work"
	exit $code
}
trap finish EXIT

step() { echo "smoke: $*"; }
fail() { echo "smoke: $*" >&2; exit 1; }

# expect LINE: waits until rig has printed it.
expect() {
	for _ in $(seq 1200); do
		if grep -qxF "$1" "$work/out"; then return; fi
		if grep -q '^error' "$work/out" || ! kill -0 $rig 2>/dev/null; then break; fi
		sleep 0.1
	done
	fail "no line '$1'"
}

step "start"
expect "ready $work/cluster/cluster.json"
grep ' ready after' "$work/err"
kubectl=$work/cluster/kubectl
pids=$(sed -n '/"pids"/,/}/s/.*: \([0-9]*\),*$/\1/p' "$work/cluster/cluster.json")
[ "$(wc -w <<<"$pids")" -eq 7 ] || fail "want 7 components, have: $pids"
[ "$($kubectl version -o json | grep -c '"gitVersion": "v1.37.2"')" -eq 2 ] || fail "kubectl or server do not say v1.37.2"

step "fake node, 20 replicas"
$kubectl create -f - <<'YAML'
apiVersion: v1
kind: Node
metadata:
  name: node-1
  annotations: {kwok.x-k8s.io/node: fake}
status:
  allocatable: {cpu: "64", memory: 256Gi, pods: "500"}
  capacity: {cpu: "64", memory: 256Gi, pods: "500"}
YAML
$kubectl wait --for=condition=Ready node/node-1 --timeout=30s
$kubectl create -f - <<'YAML'
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec:
  replicas: 20
  podManagementPolicy: Parallel
  serviceName: s
  selector: {matchLabels: {app: s}}
  template:
    metadata: {labels: {app: s}}
    spec:
      initContainers: [{name: i, image: none}]
      containers: [{name: c, image: none}]
YAML
$kubectl wait --for=jsonpath='{.status.readyReplicas}'=20 statefulset/s --timeout=60s

step "gate, and the annotations of fake pods"
$kubectl create -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec:
  schedulingGates: [{name: example.com/x}]
  containers: [{name: c, image: none}]
---
apiVersion: v1
kind: Pod
metadata: {name: held, annotations: {kwok.rolegate.dev/not-ready: "true"}}
spec:
  containers: [{name: c, image: none}]
---
apiVersion: v1
kind: Pod
metadata: {name: never, annotations: {kwok.rolegate.dev/never-run: "true"}}
spec:
  containers: [{name: c, image: none}]
YAML
$kubectl wait --for=jsonpath='{.status.phase}'=Running pod/held --timeout=30s
$kubectl wait --for=condition=Ready=false pod/held --timeout=30s
$kubectl annotate pod held kwok.rolegate.dev/not-ready-
$kubectl wait --for=condition=Ready pod/held --timeout=30s
$kubectl annotate pod held kwok.rolegate.dev/not-ready=true
$kubectl wait --for=condition=Ready=false pod/held --timeout=30s
$kubectl wait --for=condition=PodScheduled pod/never --timeout=30s
# The three pods were created together: what was to happen to the other two has happened.
[ "$($kubectl get pod never -o jsonpath='{.status.phase} {.spec.nodeName}')" = "Pending node-1" ] || fail "pod never runs"
[ "$($kubectl get pod gated -o jsonpath='{.status.conditions[0].reason} {.spec.nodeName}')" = "SchedulingGated " ] || fail "pod gated is not gated"

step "service accounts and user names"
"$bin/rig" sa-kubeconfig --kubeconfig "$work/cluster/kubeconfig" --name default --out "$work/sa"
"$bin/rig" kubectl --kubeconfig "$work/sa" auth whoami | grep system:serviceaccount:default:default
$kubectl create token default >/dev/null
grep '"resource":"pods"' "$work/cluster/log/audit.jsonl" | grep '"verb":"create"' | grep -m 1 -o 'system:serviceaccount:kube-system:statefulset-controller'

step "cert-manager: a certificate, and its CA in a webhook configuration"
$kubectl create -f - <<'YAML'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: smoke
  annotations: {cert-manager.io/inject-ca-from: default/smoke}
webhooks:
- name: smoke.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://127.0.0.1:1/"}
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [nothing]}]
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: smoke}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: smoke}
spec:
  secretName: smoke
  dnsNames: [smoke.example.com]
  issuerRef: {name: smoke}
YAML
$kubectl wait --for=condition=Ready certificate/smoke --timeout=60s
$kubectl wait --for=jsonpath='{.webhooks[0].clientConfig.caBundle}' validatingwebhookconfiguration/smoke --timeout=60s

step "LeaderWorkerSet, 2 groups of 2"
$kubectl create -f - <<'YAML'
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: l}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        containers: [{name: c, image: none}]
YAML
$kubectl wait --for=condition=Available lws/l --timeout=60s
[ "$($kubectl get pods -l leaderworkerset.sigs.k8s.io/name=l --no-headers | grep -c ' 1/1 *Running ')" -eq 4 ] || fail "want 4 running pods"

step "restart of the API server: same port, same data, others go on"
server=$(grep '"server"' "$work/cluster/cluster.json")
echo "restart kube-apiserver" >&3
expect "ok restart kube-apiserver"
[ "$server" = "$(grep '"server"' "$work/cluster/cluster.json")" ] || fail "the address has changed"
echo "restart lws" >&3
expect "ok restart lws"
$kubectl scale statefulset/s --replicas=22
$kubectl wait --for=jsonpath='{.status.readyReplicas}'=22 statefulset/s --timeout=60s
$kubectl scale lws/l --replicas=3
$kubectl wait --for=jsonpath='{.status.readyReplicas}'=3 lws/l --timeout=60s

step "deletion"
$kubectl delete statefulset s --cascade=foreground --timeout=60s
$kubectl delete lws l --timeout=60s
$kubectl wait --for=delete pod -l app=s --timeout=60s

step "stop"
exec 3>&-
wait $rig || fail "rig ended with status $?"
for pid in $pids; do
	[ ! -d "/proc/$pid" ] || fail "process $pid is left over"
done
[ ! -e "$work/cluster" ] || fail "data is left over"
step "ok"
