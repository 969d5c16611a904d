// Package kubeconfig writes the kubeconfig files of the control plane's clients.
package kubeconfig

import (
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// Cluster says how the API server is reached.
type Cluster struct {
	Server string
	CA     []byte
}

// User is one client's identity: a token or a client certificate, and
// optionally another identity to act as.
type User struct {
	Name              string
	Token             string
	Cert, Key         []byte
	Impersonate       string
	ImpersonateGroups []string
}

// Write writes one self-contained kubeconfig file (mode 0600).
func Write(path string, c Cluster, u User, namespace string) error {
	const name = "controlplane"
	cfg := api.NewConfig()
	cfg.Clusters[name] = &api.Cluster{Server: c.Server, CertificateAuthorityData: c.CA}
	cfg.AuthInfos[u.Name] = &api.AuthInfo{
		Token:                 u.Token,
		ClientCertificateData: u.Cert,
		ClientKeyData:         u.Key,
		Impersonate:           u.Impersonate,
		ImpersonateGroups:     u.ImpersonateGroups,
	}
	cfg.Contexts[name] = &api.Context{Cluster: name, AuthInfo: u.Name, Namespace: namespace}
	cfg.CurrentContext = name
	return clientcmd.WriteToFile(*cfg, path)
}
