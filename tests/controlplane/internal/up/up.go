// Package up is `rig up`: it starts a whole control plane as child processes,
// tells where it is, and stops it again.
package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// Main runs the command and returns the exit code.
func Main(args []string) int {
	o, err := parseOptions(args)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rig up:", err)
		return 2
	}
	files, err := openLayout(o.dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rig up:", err)
		return 1
	}
	if err := run(o, files); err != nil {
		fmt.Fprintln(os.Stderr, "rig up:", err)
		files.close(o.keep, true)
		fmt.Fprintln(os.Stderr, "rig up: logs are kept in", files.path("log"))
		return 1
	}
	files.close(o.keep, o.keepLogs)
	return 0
}

// run returns nil if the control plane was stopped on request.
func run(o *options, files *layout) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer cancel()
	// In the background of a terminal, reading commands would stop the process;
	// this way standard input just appears to be closed.
	signal.Ignore(syscall.SIGTTIN)
	c, err := newCluster(o, files)
	if err != nil {
		return err
	}
	s := newSupervisor(c)
	costs, err := openLedger()
	if err != nil {
		return err
	}
	began := time.Now()
	orphan := false
	// Whatever ends the run, no component is left behind.
	defer func() {
		cancel()
		stopping := time.Now()
		s.stopAll()
		progress("stopped (%.1f s)", time.Since(stopping).Seconds())
		costs.write(s, orphan)
	}()

	stdinClosed := make(chan struct{})
	started := make(chan error, 1)
	go func() {
		if err := s.startAll(ctx); err != nil {
			started <- err
			return
		}
		if err := s.publish(); err != nil {
			started <- err
			return
		}
		progress("ready after %.1f s", time.Since(began).Seconds())
		fmt.Println("ready", c.clusterPath())
		s.control(ctx, os.Stdin, os.Stdout)
		close(stdinClosed)
	}()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-stdinClosed:
			if o.untilStdinCloses {
				orphan = true
				return nil
			}
			stdinClosed = nil
		case crash := <-s.crashes:
			return fmt.Errorf("%w\n%s", crash, tail(files.log(crash.name)))
		case err := <-started:
			if ctx.Err() != nil {
				return nil
			}
			// If the reason is a component's end, its log says more.
			select {
			case crash := <-s.crashes:
				return fmt.Errorf("%w\n%s", crash, tail(files.log(crash.name)))
			case <-time.After(100 * time.Millisecond):
				return err
			}
		}
	}
}

// tail returns the last lines of a log file.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) > 30 {
		lines = lines[len(lines)-30:]
	}
	return "--- end of " + path + "\n" + strings.Join(lines, "\n")
}
