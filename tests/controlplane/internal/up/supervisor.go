package up

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// startDeadline is generous: machines that run tests may be busy.
const startDeadline = 3 * time.Minute

// crash says that a component ended without having been told to.
type crash struct {
	name string
	err  error
}

func (c *crash) Error() string { return fmt.Sprintf("%s ended unexpectedly: %v", c.name, c.err) }

// supervisor starts and stops the components of a cluster.
type supervisor struct {
	cluster *cluster
	list    []*component
	spawn   *spawner
	crashes chan *crash

	// busy is held while components are started or stopped as a whole or by a
	// command, so that the end of the run never overlaps with a start.
	busy sync.Mutex

	mu    sync.Mutex // guards pids, ended and the components' child
	pids  map[string]int
	ended map[string]time.Duration // processor time of children that have ended
}

func newSupervisor(c *cluster) *supervisor {
	return &supervisor{
		cluster: c,
		list:    c.components(),
		spawn:   newSpawner(),
		crashes: make(chan *crash, 16),
		pids:    map[string]int{},
		ended:   map[string]time.Duration{},
	}
}

func (s *supervisor) find(name string) (*component, error) {
	for _, c := range s.list {
		if c.name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no component %q", name)
}

// startAll brings up the store, then the API server, then all others together.
func (s *supervisor) startAll(ctx context.Context) error {
	s.busy.Lock()
	defer s.busy.Unlock()
	for _, name := range []string{etcd, apiserver} {
		c, err := s.find(name)
		if err != nil {
			return err
		}
		if err := s.start(ctx, c); err != nil {
			return err
		}
	}
	others := s.list[2:]
	errs := make(chan error)
	for _, c := range others {
		go func() { errs <- s.start(ctx, c) }()
	}
	var all []error
	for range others {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// start starts one component and returns when it is healthy.
func (s *supervisor) start(ctx context.Context, c *component) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.running(c) != nil {
		return fmt.Errorf("%s is running already", c.name)
	}
	if c.prepare != nil {
		c.prepare()
	}
	began := time.Now()
	child, err := s.spawn.start(c.argv, s.cluster.files.log(c.name), func(err error) {
		s.crashes <- &crash{c.name, err}
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	s.set(c, child)
	ctx, cancel := context.WithTimeoutCause(ctx, startDeadline, fmt.Errorf("not healthy after %s", startDeadline))
	defer cancel()
	if err := await(ctx, c.healthy, child.done); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	progress("%s started (pid %d, %.1f s)", c.name, child.pid(), time.Since(began).Seconds())
	return nil
}

// end stops or kills one component.
func (s *supervisor) end(c *component, how func(*child)) error {
	child := s.running(c)
	if child == nil {
		return fmt.Errorf("%s is not running", c.name)
	}
	how(child)
	s.set(c, nil)
	s.mu.Lock()
	s.ended[c.name] += child.spent
	s.mu.Unlock()
	return nil
}

// spent returns the processor time of what ended of one component.
func (s *supervisor) spent(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended[name]
}

// stopAll ends the clients first, so that nothing waits for what is gone. The
// context of startAll and control must have been cancelled.
func (s *supervisor) stopAll() {
	s.busy.Lock()
	defer s.busy.Unlock()
	var wg sync.WaitGroup
	for _, c := range s.list[2:] {
		wg.Go(func() { s.end(c, (*child).stop) })
	}
	wg.Wait()
	for _, c := range []*component{s.list[1], s.list[0]} {
		s.end(c, (*child).stop)
	}
}

func (s *supervisor) signal(c *component, sig syscall.Signal) error {
	child := s.running(c)
	if child == nil {
		return fmt.Errorf("%s is not running", c.name)
	}
	return child.signal(sig)
}

func (s *supervisor) running(c *component) *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.child
}

func (s *supervisor) set(c *component, child *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.child = child
	if child == nil {
		delete(s.pids, c.name)
	} else {
		s.pids[c.name] = child.pid()
	}
}

// publish writes cluster.json.
func (s *supervisor) publish() error {
	s.mu.Lock()
	pids := maps.Clone(s.pids)
	s.mu.Unlock()
	return s.cluster.writeClusterFile(pids)
}

func (s *supervisor) names() []string {
	var names []string
	for _, c := range s.list {
		names = append(names, c.name)
	}
	return slices.Sorted(slices.Values(names))
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "rig: "+format+"\n", args...)
}
