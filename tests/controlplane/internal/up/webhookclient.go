package up

import (
	"crypto/x509/pkix"
	"fmt"
	"os"

	"rolegate.dev/tests/controlplane/internal/kubeconfig"
)

const admissionConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
`

const admissionPlugin = `- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %q
`

// writeWebhookClient gives the API server a client certificate for webhooks.
func (c *cluster) writeWebhookClient(ca *authority) error {
	p, err := ca.issue(pkix.Name{CommonName: c.opts.webhookClient})
	if err != nil {
		return err
	}
	// The API server looks for a user by the webhook's host; this one is for all.
	path := c.files.path("conf", "webhook-client.kubeconfig")
	user := kubeconfig.User{Name: "*", Cert: p.cert, Key: p.key}
	if err := kubeconfig.Write(path, kubeconfig.Cluster{}, user, ""); err != nil {
		return err
	}
	text := admissionConfig
	for _, plugin := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		text += fmt.Sprintf(admissionPlugin, plugin, path)
	}
	return os.WriteFile(c.admissionConfig(), []byte(text), 0o600)
}

func (c *cluster) admissionConfig() string { return c.files.path("conf", "admission.yaml") }
