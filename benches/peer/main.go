// Peer is the webhook that rolegate is compared with in `make bench-review`: the same
// edits to a pod of a batched role, written the way users of controller-runtime
// write them. The pod is decoded into its Go type and changed there, and the
// library makes the patch from the difference.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	gate    = "rolegate.dev/hold"
	heldBy  = "rolegate.dev/held-by"
	bornAs  = "rolegate.dev/born-as"
	segment = "rolegate.dev/segment"
	prefix  = "rolebasedgroup.workloads.x-k8s.io/"
	// The kind that coordinates the group.
	carrier     = "rolegate.dev/carrier"
	carrierKind = "RoleBasedGroup.v1alpha1.workloads.x-k8s.io"
)

// group is what a controller would keep of a RoleBasedGroup.
type group struct {
	coordination string
	segmentSizes map[string]int
}

// holder gates pods of batched roles and labels them.
type holder struct {
	mu     sync.RWMutex
	groups map[string]group
}

func (h *holder) find(namespace, name string) (group, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	found, ok := h.groups[namespace+"/"+name]
	return found, ok
}

// Default is called by the library for each pod.
func (h *holder) Default(_ context.Context, pod *corev1.Pod) error {
	name, role := pod.Labels["rolegate.dev/group"], pod.Labels["rolegate.dev/role"]
	group, ok := h.find(pod.Namespace, name)
	if !ok {
		return nil
	}
	size, ok := group.segmentSizes[role]
	if !ok {
		return nil
	}
	if index, err := strconv.Atoi(pod.Labels["apps.kubernetes.io/pod-index"]); err == nil {
		pod.Labels[prefix+"name"] = name
		pod.Labels[prefix+"role"] = role
		pod.Labels[prefix+"role-subgroup-size"] = strconv.Itoa(size)
		pod.Labels[prefix+"role-instance-index"] = strconv.Itoa(index)
		pod.Labels[segment] = strconv.Itoa(index / size)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[heldBy] = name + "/" + group.coordination
	pod.Annotations[bornAs] = name + "/" + role
	pod.Annotations[carrier] = carrierKind
	hasGate := func(present corev1.PodSchedulingGate) bool { return present.Name == gate }
	if !slices.ContainsFunc(pod.Spec.SchedulingGates, hasGate) {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
	}
	return nil
}

func main() {
	certificates := flag.String("cert-dir", "", "folder of tls.crt and tls.key")
	port := flag.Int("port", 0, "port on loopback")
	flag.Parse()
	// As the project layout of kubebuilder has it, without its development mode.
	log.SetLogger(zap.New())
	pods := &holder{groups: map[string]group{
		"sts-parallel/llm": {coordination: "segments", segmentSizes: map[string]int{"decode": 5}},
	}}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *certificates})
	server.Register("/mutate", admission.WithDefaulter[*corev1.Pod](scheme.Scheme, pods))
	if err := server.Start(signals.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}
