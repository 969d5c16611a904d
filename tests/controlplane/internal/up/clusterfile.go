package up

import (
	"encoding/json"
	"os"
)

// clusterFile is cluster.json, which tells a test how to use the control plane.
type clusterFile struct {
	Server     string         `json:"server"`
	Kubeconfig string         `json:"kubeconfig"`
	CAFile     string         `json:"caFile"`
	Token      string         `json:"token"`
	Kubectl    []string       `json:"kubectl"`
	Dir        string         `json:"dir"`
	AuditLog   string         `json:"auditLog,omitempty"`
	With       []string       `json:"with"`
	PID        int            `json:"pid"`
	PIDs       map[string]int `json:"pids"`
	Ports      map[string]int `json:"ports"`
}

// writeClusterFile is called again whenever a pid changes; a reader sees the
// old file or the new one.
func (c *cluster) writeClusterFile(pids map[string]int) error {
	f := clusterFile{
		Server:     c.server(),
		Kubeconfig: c.kubeconfig(),
		CAFile:     c.pki("ca.crt"),
		Token:      c.token,
		Kubectl:    []string{c.self, "kubectl", "--kubeconfig", c.kubeconfig()},
		Dir:        c.files.dir,
		With:       append([]string{}, c.opts.with...),
		PID:        os.Getpid(),
		PIDs:       pids,
		Ports:      c.ports,
	}
	if c.opts.audit {
		f.AuditLog = c.auditLog()
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	tmp := c.files.path("conf", "cluster.json.new")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, c.clusterPath())
}

func (c *cluster) clusterPath() string { return c.files.path("cluster.json") }
