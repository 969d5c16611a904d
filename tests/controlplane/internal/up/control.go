package up

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
)

// control reads commands, one a line, carries them out one after the other and
// answers each with one line. It returns when in is at its end.
func (s *supervisor) control(ctx context.Context, in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		err := s.command(ctx, line)
		if err == nil {
			err = s.publish()
		}
		if err != nil {
			reason := strings.Join(strings.Fields(err.Error()), " ")
			fmt.Fprintf(out, "error %s: %s\n", line, reason)
			continue
		}
		fmt.Fprintf(out, "ok %s\n", line)
	}
}

func (s *supervisor) command(ctx context.Context, line string) error {
	s.busy.Lock()
	defer s.busy.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	words := strings.Fields(line)
	if len(words) != 2 {
		return fmt.Errorf("want: start|stop|kill|restart|exchange|pause|resume COMPONENT")
	}
	c, err := s.find(words[1])
	if err != nil {
		return fmt.Errorf("%w (%s)", err, strings.Join(s.names(), ", "))
	}
	switch words[0] {
	case "start":
		return s.start(ctx, c)
	case "stop":
		return s.end(c, (*child).stop)
	case "kill":
		return s.end(c, (*child).kill)
	case "restart":
		if err := s.end(c, (*child).stop); err != nil {
			return err
		}
		return s.start(ctx, c)
	case "exchange":
		if err := s.cluster.exchange(c); err != nil {
			return err
		}
		if err := s.end(c, (*child).stop); err != nil {
			return err
		}
		return s.start(ctx, c)
	case "pause":
		return s.signal(c, syscall.SIGSTOP)
	case "resume":
		return s.signal(c, syscall.SIGCONT)
	}
	return fmt.Errorf("unknown command %q", words[0])
}
