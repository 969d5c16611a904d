package up

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
)

// Annotations of a pod which the stages below look at; only their presence counts.
const (
	annotationNeverRun = "kwok.rolegate.dev/never-run"
	annotationNotReady = "kwok.rolegate.dev/not-ready"
)

// podStatus is the status a fake kubelet reports for a pod, as kwok template:
// Running, and Ready unless the pod carries the not-ready annotation.
//
//go:embed stages/pod-status.tmpl
var podStatus string

type match struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

func phase(p string) match { return match{".status.phase", "In", []string{p}} }
func ready(s string) match {
	return match{`.status.conditions.[] | select( .type == "Ready" ) | .status`, "In", []string{s}}
}
func annotated(name string) match {
	return match{`.metadata.annotations["` + name + `"]`, "Exists", nil}
}
func notAnnotated(name string) match {
	return match{`.metadata.annotations["` + name + `"]`, "DoesNotExist", nil}
}

var (
	deleted    = match{".metadata.deletionTimestamp", "Exists", nil}
	notDeleted = match{".metadata.deletionTimestamp", "DoesNotExist", nil}
)

// podStage is one kwok Stage for pods which fulfil all of matches.
func podStage(name string, next map[string]any, matches ...match) map[string]any {
	return map[string]any{
		"apiVersion": "kwok.x-k8s.io/v1alpha1",
		"kind":       "Stage",
		"metadata":   map[string]any{"name": name},
		"spec": map[string]any{
			"resourceRef": map[string]any{"apiGroup": "v1", "kind": "Pod"},
			"selector":    map[string]any{"matchExpressions": matches},
			"next":        next,
		},
	}
}

// writeKwokConfig writes kwok's configuration and stages into one file. At most
// one pod stage matches a pod at any time: kwok would choose among several by chance.
func writeKwokConfig(path, pods string) error {
	status := map[string]any{"statusTemplate": podStatus}
	docs := []map[string]any{
		{
			"apiVersion": "config.kwok.x-k8s.io/v1alpha1",
			"kind":       "KwokConfiguration",
			"options": map[string]any{
				// Its default of 4 is what limits a start of thousands of pods.
				"podPlayStageParallelism":  16,
				"nodePlayStageParallelism": 16,
				"cidr":                     pods,
			},
		},
		podStage("pod-run", status, notDeleted, phase("Pending"), notAnnotated(annotationNeverRun)),
		podStage("pod-become-ready", status, notDeleted, phase("Running"), ready("False"), notAnnotated(annotationNotReady)),
		podStage("pod-become-not-ready", status, notDeleted, phase("Running"), ready("True"), annotated(annotationNotReady)),
		podStage("pod-delete", map[string]any{"delete": true}, deleted),
	}
	var out bytes.Buffer
	for _, node := range []string{nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease} {
		out.WriteString(node + "\n---\n")
	}
	for _, doc := range docs {
		// JSON is YAML, and needs no care about quoting.
		b, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		out.Write(append(b, "\n---\n"...))
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}
