package up

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Extras which --with can ask for.
const (
	kwok        = "kwok"
	certManager = "cert-manager"
	lws         = "lws"
)

type options struct {
	dir              string
	with             []string
	addons           string
	webhookClient    string
	programs, next   string
	audit, ipv6      bool
	keep, keepLogs   bool
	untilStdinCloses bool

	apiserverFlags, schedulerFlags, kcmFlags []string
}

// parseOptions returns errHelp after --help.
func parseOptions(args []string) (*options, error) {
	o := &options{}
	fs := pflag.NewFlagSet("rig up", pflag.ContinueOnError)
	fs.StringVar(&o.dir, "dir", "", "directory for data, certificates, logs and cluster.json (new, empty, or left by an earlier run)")
	fs.StringSliceVar(&o.with, "with", nil, "extras to start: kwok,cert-manager,lws")
	fs.StringVar(&o.addons, "addons", "", "addons binary (default: next to rig)")
	fs.StringVar(&o.webhookClient, "webhook-client", "", "common name of a certificate (of DIR/pki/ca.crt) which the API server shows to webhooks (default: it shows none)")
	fs.StringVar(&o.programs, "programs", "", "binary with kube-apiserver, kube-scheduler and kube-controller-manager of another version (default: rig itself)")
	fs.StringVar(&o.next, "next", "", "binary which the command exchange brings in place of --programs (default: rig itself)")
	fs.BoolVar(&o.audit, "audit", false, "write an audit log, level Metadata, to DIR/log/audit.jsonl")
	fs.BoolVar(&o.ipv6, "ipv6", false, "listen on ::1 instead of 127.0.0.1; Services and pods have addresses of IPv6")
	fs.BoolVar(&o.keep, "keep", false, "leave everything in DIR after the end")
	fs.BoolVar(&o.keepLogs, "keep-logs", false, "leave DIR/log after the end (always so after a failure)")
	fs.BoolVar(&o.untilStdinCloses, "until-stdin-closes", false, "also stop when standard input reaches its end")
	fs.StringArrayVar(&o.apiserverFlags, "apiserver-flag", nil, "extra kube-apiserver flag, NAME=VALUE; repeatable")
	fs.StringArrayVar(&o.schedulerFlags, "scheduler-flag", nil, "extra kube-scheduler flag, NAME=VALUE; repeatable")
	fs.StringArrayVar(&o.kcmFlags, "controller-manager-flag", nil, "extra kube-controller-manager flag, NAME=VALUE; repeatable")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if o.dir == "" {
		return nil, errors.New("--dir is required")
	}
	for _, w := range o.with {
		if !slices.Contains([]string{kwok, certManager, lws}, w) {
			return nil, fmt.Errorf("--with %s: unknown (kwok, cert-manager, lws)", w)
		}
	}
	for _, list := range [][]string{o.apiserverFlags, o.schedulerFlags, o.kcmFlags} {
		for i, f := range list {
			list[i] = "--" + strings.TrimLeft(f, "-")
		}
	}
	var err error
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return nil, err
	}
	return o, o.findAddons()
}

// findAddons resolves --addons when one of its controllers is wanted.
func (o *options) findAddons() error {
	if !slices.Contains(o.with, certManager) && !slices.Contains(o.with, lws) {
		return nil
	}
	if o.addons == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		o.addons = filepath.Join(filepath.Dir(self), "addons")
	}
	if _, err := os.Stat(o.addons); err != nil {
		return fmt.Errorf("cert-manager and lws need the addons binary (build.sh addons): %w", err)
	}
	return nil
}
