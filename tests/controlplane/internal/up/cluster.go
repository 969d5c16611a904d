package up

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"rolegate.dev/tests/controlplane/internal/kubeconfig"
)

// cluster is what the components need to know about each other.
type cluster struct {
	opts   *options
	files  *layout
	self   string // this binary, which all components are started from
	ports  map[string]int
	token  string // the administrator's
	ca     []byte
	http   *http.Client
	client kubernetes.Interface
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// newCluster reserves the ports and writes certificates and configuration.
func newCluster(o *options, files *layout) (*cluster, error) {
	c := &cluster{opts: o, files: files, ports: map[string]int{}, token: newToken()}
	var err error
	if c.self, err = os.Executable(); err != nil {
		return nil, err
	}
	for _, name := range []string{etcd, "etcd-peer", apiserver, scheduler, kcm} {
		if c.ports[name], err = reservePort(net.ParseIP(o.family().loopback)); err != nil {
			return nil, err
		}
	}
	if err := c.writePKI(); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	if slices.Contains(o.with, kwok) {
		if err := writeKwokConfig(files.path("conf", "kwok.yaml"), o.family().pods); err != nil {
			return nil, err
		}
	}
	if o.audit {
		if err := os.WriteFile(files.path("conf", "audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
			return nil, err
		}
	}
	wrapper := fmt.Sprintf("#!/bin/sh\nexec '%s' kubectl --kubeconfig '%s' \"$@\"\n", c.self, c.kubeconfig())
	if err := os.WriteFile(files.path("kubectl"), []byte(wrapper), 0o755); err != nil {
		return nil, err
	}
	return c, c.connect()
}

func (c *cluster) server() string { return "https://" + c.address(apiserver) }

// address is where a component listens.
func (c *cluster) address(name string) string {
	return net.JoinHostPort(c.opts.family().loopback, strconv.Itoa(c.ports[name]))
}

func (c *cluster) kubeconfig() string { return c.files.path("kubeconfig") }

// writePKI makes all keys and certificates, and a kubeconfig for each client.
func (c *cluster) writePKI() error {
	ca, caPair, err := newAuthority()
	if err != nil {
		return err
	}
	c.ca = ca.pem
	if err := caPair.write(c.pki("ca.crt"), c.pki("ca.key")); err != nil {
		return err
	}
	// Without a front-proxy authority, which no one uses here, the other
	// components fill their logs with complaints.
	_, proxyPair, err := newAuthority()
	if err != nil {
		return err
	}
	if err := proxyPair.write(c.pki("front-proxy-ca.crt"), c.pki("front-proxy-ca.key")); err != nil {
		return err
	}
	serving, err := ca.issue(pkix.Name{CommonName: "kube-apiserver"})
	if err != nil {
		return err
	}
	if err := serving.write(c.pki("apiserver.crt"), c.pki("apiserver.key")); err != nil {
		return err
	}
	saKey, err := newSigningKey()
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.pki("sa.key"), saKey, 0o600); err != nil {
		return err
	}
	const adminName = "kubernetes-admin"
	tokens := fmt.Sprintf("%s,%s,%s,\"system:masters\"\n", c.token, adminName, adminName)
	if err := os.WriteFile(c.pki("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return err
	}

	endpoint := kubeconfig.Cluster{Server: c.server(), CA: c.ca}
	admin := kubeconfig.User{Name: adminName, Token: c.token}
	if err := kubeconfig.Write(c.kubeconfig(), endpoint, admin, "default"); err != nil {
		return err
	}
	// The two controllers come with client certificates, as in a real cluster.
	for _, name := range []string{scheduler, kcm} {
		p, err := ca.issue(pkix.Name{CommonName: "system:" + name})
		if err != nil {
			return err
		}
		user := kubeconfig.User{Name: "system:" + name, Cert: p.cert, Key: p.key}
		if err := kubeconfig.Write(c.files.path("conf", name+".kubeconfig"), endpoint, user, ""); err != nil {
			return err
		}
	}
	if c.opts.webhookClient != "" {
		if err := c.writeWebhookClient(ca); err != nil {
			return err
		}
	}
	// The extras show up under the names they have in a real cluster, but their
	// many RBAC objects are left out: they may do everything.
	for _, name := range c.opts.with {
		user := admin
		user.Impersonate = map[string]string{
			kwok:        "system:serviceaccount:kube-system:kwok-controller",
			certManager: "system:serviceaccount:cert-manager:cert-manager",
			lws:         "system:serviceaccount:lws-system:lws-controller-manager",
		}[name]
		user.ImpersonateGroups = []string{"system:masters"}
		if err := kubeconfig.Write(c.files.path("conf", name+".kubeconfig"), endpoint, user, ""); err != nil {
			return err
		}
	}
	return nil
}

// connect prepares the launcher's own clients.
func (c *cluster) connect() error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.ca)
	c.http = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool},
		// Each probe asks the process that listens now, and keeps no connection
		// which the API server would wait for when it ends.
		DisableKeepAlives: true,
	}}
	var err error
	c.client, err = kubernetes.NewForConfig(&rest.Config{
		Host:            c.server(),
		BearerToken:     c.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca},
		QPS:             -1,
		UserAgent:       "rig",
	})
	return err
}
