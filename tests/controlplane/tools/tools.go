//go:build tools

// Package tools names the programs that are built as they are, at the versions of go.mod. The module is one of its own: what
// the control plane is built from does not change with it.
package tools

import (
	_ "github.com/prometheus/prometheus/cmd/promtool"
	_ "helm.sh/helm/v4/cmd/helm"
)
