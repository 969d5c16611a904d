package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// registerWebhooks creates the project's own webhook configurations, with the
// patches which its kustomization applies, but reached at the server's URL.
func registerWebhooks(ctx context.Context, config *rest.Config, dir, prefix string, server *webhookServer) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	manifests, err := os.ReadFile(filepath.Join(dir, "manifests.yaml"))
	if err != nil {
		return err
	}
	for _, doc := range bytes.Split(manifests, []byte("\n---\n")) {
		doc = bytes.TrimPrefix(bytes.TrimSpace(doc), []byte("---\n"))
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			return err
		}
		var w client.Object
		switch kind.Kind {
		case "MutatingWebhookConfiguration":
			m := &admission.MutatingWebhookConfiguration{}
			err = patched(doc, filepath.Join(dir, "mutating-patch.yaml"), m)
			for i := range m.Webhooks {
				server.redirect(&m.Webhooks[i].ClientConfig)
			}
			w = m
		case "ValidatingWebhookConfiguration":
			v := &admission.ValidatingWebhookConfiguration{}
			err = patched(doc, filepath.Join(dir, "validating-patch.yaml"), v)
			for i := range v.Webhooks {
				server.redirect(&v.Webhooks[i].ClientConfig)
			}
			w = v
		default:
			err = fmt.Errorf("unexpected kind %q in manifests.yaml", kind.Kind)
		}
		if err != nil {
			return err
		}
		w.SetName(prefix + w.GetName())
		if err := apply(ctx, c, w); err != nil {
			return err
		}
	}
	return nil
}

// apply creates a configuration or, after a restart, replaces the one which
// knows the old port and certificate.
func apply(ctx context.Context, c client.Client, w client.Object) error {
	err := c.Create(ctx, w)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	old := w.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(w), old); err != nil {
		return err
	}
	w.SetResourceVersion(old.GetResourceVersion())
	return c.Update(ctx, w)
}

// redirect turns a reference to a Service into the server's URL.
func (s *webhookServer) redirect(c *admission.WebhookClientConfig) {
	url := s.url()
	if c.Service != nil && c.Service.Path != nil {
		url += *c.Service.Path
	}
	*c = admission.WebhookClientConfig{URL: &url, CABundle: s.caBundle}
}

// patched applies a JSON patch file to a document and decodes the result.
func patched(doc []byte, patchFile string, into any) error {
	b, err := os.ReadFile(patchFile)
	if err != nil {
		return err
	}
	if b, err = yaml.YAMLToJSON(b); err != nil {
		return fmt.Errorf("%s: %w", patchFile, err)
	}
	patch, err := jsonpatch.DecodePatch(b)
	if err != nil {
		return fmt.Errorf("%s: %w", patchFile, err)
	}
	if doc, err = yaml.YAMLToJSON(doc); err != nil {
		return err
	}
	if doc, err = patch.Apply(doc); err != nil {
		return fmt.Errorf("%s: %w", patchFile, err)
	}
	return yaml.Unmarshal(doc, into)
}
