package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// probe makes one attempt to see whether a component works.
type probe func(context.Context) error

const probeInterval = 50 * time.Millisecond

// await repeats p until it succeeds, ctx ends or gone is closed.
func await(ctx context.Context, p probe, gone <-chan struct{}) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := p(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-gone:
			return errors.New("it ended")
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %v", context.Cause(ctx), err)
		case <-time.After(probeInterval):
		}
	}
}

func (c *cluster) httpProbe(scheme, name, path string) probe {
	url := scheme + "://" + c.address(name) + path
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s: %s", path, resp.Status, body)
		}
		return nil
	}
}

// schedulerProbe takes the older question where the newer one is not known:
// schedulers up to 1.30 have no /readyz.
func (c *cluster) schedulerProbe() probe {
	readyz := c.httpProbe("https", scheduler, "/readyz")
	if c.opts.programs != "" {
		readyz = c.httpProbe("https", scheduler, "/healthz")
	}
	return readyz
}

// kcmProbe wants more than the manager's own word: no pod can be created in a
// namespace before its controllers have made the namespace's service account.
func (c *cluster) kcmProbe() probe {
	healthz := c.httpProbe("https", kcm, "/healthz")
	return func(ctx context.Context) error {
		if err := healthz(ctx); err != nil {
			return err
		}
		if _, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err := c.client.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	}
}

// kwokProbe lets kwok bring up a node. It is marked unschedulable and deleted
// at once, so that no pod ever sees it.
func (c *cluster) kwokProbe() probe {
	const name = "rig-kwok-probe"
	nodes := c.client.CoreV1().Nodes
	return func(ctx context.Context) error {
		node, err := nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = nodes().Create(ctx, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
				Spec:       corev1.NodeSpec{Unschedulable: true},
			}, metav1.CreateOptions{})
			if err == nil {
				err = errors.New("node created")
			}
			return err
		}
		if err != nil {
			return err
		}
		for _, cond := range node.Status.Conditions {
			if cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue {
				return nodes().Delete(ctx, name, metav1.DeleteOptions{})
			}
		}
		return errors.New("its probe node is not Ready")
	}
}

// fileProbe waits for the file which the addons write when they are ready.
func fileProbe(path string) probe {
	return func(context.Context) error {
		_, err := os.Stat(path)
		return err
	}
}

func removeFile(path string) func() { return func() { os.Remove(path) } }
