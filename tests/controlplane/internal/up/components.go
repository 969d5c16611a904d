package up

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
)

// Names of the control plane's own components.
const (
	etcd      = "etcd"
	apiserver = "kube-apiserver"
	scheduler = "kube-scheduler"
	kcm       = "kube-controller-manager"
)

// component is one process of the control plane.
type component struct {
	name string
	argv []string
	// prepare runs before each start.
	prepare func()
	// healthy makes one attempt; nil means that it serves.
	healthy probe
	child   *child // nil when not running
}

// components describes the processes, in the order of their start.
func (c *cluster) components() []*component {
	list := []*component{
		{name: etcd, argv: c.etcdArgs(), healthy: c.httpProbe("http", etcd, "/readyz")},
		{name: apiserver, argv: c.apiserverArgs(), healthy: c.httpProbe("https", apiserver, "/readyz")},
		{name: scheduler, argv: c.schedulerArgs(), healthy: c.schedulerProbe()},
		{name: kcm, argv: c.kcmArgs(), healthy: c.kcmProbe()},
	}
	for _, name := range c.opts.with {
		if name == kwok {
			list = append(list, &component{name: kwok, argv: c.kwokArgs(), healthy: c.kwokProbe()})
			continue
		}
		ready := c.files.path("ready", name)
		list = append(list, &component{
			name: name,
			argv: []string{c.opts.addons, name,
				"--kubeconfig=" + c.files.path("conf", name+".kubeconfig"),
				"--ready-file=" + ready},
			prepare: removeFile(ready),
			healthy: fileProbe(ready),
		})
	}
	return list
}

func (c *cluster) etcdArgs() []string {
	client := "http://" + c.address(etcd)
	peer := "http://" + c.address("etcd-peer")
	return []string{c.self, etcd,
		"--name=etcd",
		"--data-dir=" + c.files.path("etcd"),
		// The data need not outlive the machine, and fsync would dominate the
		// time of every write.
		"--unsafe-no-fsync",
		"--socket-reuse-port",
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=etcd=" + peer,
		"--log-level=warn",
	}
}

func (c *cluster) apiserverArgs() []string {
	args := []string{c.programs(), apiserver,
		"--etcd-servers=http://" + c.address(etcd),
		"--bind-address=" + c.opts.family().loopback,
		fmt.Sprintf("--secure-port=%d", c.ports[apiserver]),
		"--permit-port-sharing",
		// There is no network to advertise the server on; without these it
		// looks for a default route and fails on a machine which has none.
		"--advertise-address=" + c.opts.family().loopback,
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--requestheader-client-ca-file=" + c.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--token-auth-file=" + c.pki("tokens.csv"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki("sa.key"),
		"--service-account-signing-key-file=" + c.pki("sa.key"),
		"--service-cluster-ip-range=" + c.opts.family().services,
		"--allow-privileged=true",
		"--profiling=false",
		// Otherwise it waits for its watchers, who do not go away, when it is
		// told to end.
		"--shutdown-watch-termination-grace-period=1s",
	}
	if c.opts.audit {
		args = append(args,
			"--audit-policy-file="+c.files.path("conf", "audit-policy.yaml"),
			"--audit-log-path="+c.auditLog(),
			"--audit-log-format=json")
	}
	if c.opts.webhookClient != "" {
		args = append(args, "--admission-control-config-file="+c.admissionConfig())
	}
	return append(args, c.opts.apiserverFlags...)
}

// controllerArgs are common to the scheduler and the controller manager. Their
// own client limits (20 to 50 requests a second) would be what a test of some
// thousand pods measures.
func (c *cluster) controllerArgs(name string) []string {
	conf := c.files.path("conf", name+".kubeconfig")
	return []string{c.programs(), name,
		"--kubeconfig=" + conf,
		"--authentication-kubeconfig=" + conf,
		"--authorization-kubeconfig=" + conf,
		"--bind-address=" + c.opts.family().loopback,
		fmt.Sprintf("--secure-port=%d", c.ports[name]),
		"--permit-port-sharing",
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--leader-elect=false",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--profiling=false",
	}
}

func (c *cluster) schedulerArgs() []string {
	return append(c.controllerArgs(scheduler), c.opts.schedulerFlags...)
}

func (c *cluster) kcmArgs() []string {
	args := append(c.controllerArgs(kcm),
		// Each controller acts as its own service account, so that user names
		// in admission reviews are those of a real cluster.
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.pki("sa.key"),
		"--root-ca-file="+c.pki("ca.crt"),
		"--cluster-signing-cert-file="+c.pki("ca.crt"),
		"--cluster-signing-key-file="+c.pki("ca.key"),
		"--service-cluster-ip-range="+c.opts.family().services,
		"--controllers=*,-node-ipam-controller",
		"--concurrent-deployment-syncs=20",
		"--concurrent-replicaset-syncs=20",
		"--concurrent-statefulset-syncs=20",
		"--concurrent-job-syncs=20",
		// kwok reports a node's state every ten minutes only; see kwokArgs.
		"--node-monitor-grace-period=1h",
	)
	return append(args, c.opts.kcmFlags...)
}

func (c *cluster) kwokArgs() []string {
	return []string{c.self, kwok,
		"--kubeconfig=" + c.files.path("conf", "kwok.kubeconfig"),
		"--config=" + c.files.path("conf", "kwok.yaml"),
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		// No node leases: after a restart kwok would wait for its own old ones,
		// and their renewal is load without use.
		"--node-lease-duration-seconds=0",
	}
}

// programs is the binary that the API server, the scheduler and the controller
// manager are started from.
func (c *cluster) programs() string { return cmp.Or(c.opts.programs, c.self) }

// exchange has a component of Kubernetes start from the other binary: of --next
// instead of --programs, or the other way round.
func (c *cluster) exchange(p *component) error {
	if c.opts.programs == "" || !slices.Contains([]string{apiserver, scheduler, kcm}, p.name) {
		return fmt.Errorf("%s has no other version", p.name)
	}
	if p.argv[0] == c.opts.programs {
		p.argv[0] = cmp.Or(c.opts.next, c.self)
	} else {
		p.argv[0] = c.opts.programs
	}
	return nil
}

func (c *cluster) pki(name string) string { return c.files.path("pki", name) }

func (c *cluster) auditLog() string { return filepath.Join(c.files.path("log"), "audit.jsonl") }
