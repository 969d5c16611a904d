package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// installCRDs creates the CRDs in dir and waits until they are served.
func installCRDs(ctx context.Context, cfg *rest.Config, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no files in %s (build.sh addons puts them there)", dir)
	}
	client, err := clientset.NewForConfig(cfg)
	if err != nil {
		return err
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	var names []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &apiext.CustomResourceDefinition{}
		if err := yaml.Unmarshal(b, crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		// After a restart they exist already.
		if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s: %w", file, err)
		}
		names = append(names, crd.Name)
	}
	for _, name := range names {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			crd, err := crds.Get(ctx, name, metav1.GetOptions{})
			return err == nil && established(crd), nil
		})
		if err != nil {
			return fmt.Errorf("%s is not established: %w", name, err)
		}
	}
	return nil
}

func established(crd *apiext.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiext.Established {
			return c.Status == apiext.ConditionTrue
		}
	}
	return false
}
