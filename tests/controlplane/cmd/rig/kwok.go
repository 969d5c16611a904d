package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// runKwok does what kwok's own main does: its stage files are read from
// --config before the command itself is built.
func runKwok() int {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx := signals.SetupSignalContext()
	ctx, _ = log.InitFlags(ctx, flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kwok: configuration:", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	// Kubernetes' packages bring a global --version flag of another type, which
	// cobra would take for its own.
	command.Version = ""
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		return 1
	}
	return 0
}
