// Server-sent events of JSON, followed until told otherwise. By fetch, since an EventSource sends no token.

/**
 * Follows a stream and takes it up again when it breaks, or says nothing for `patience` milliseconds, until `signal` is aborted or a
 * token is asked for. The server says something every 15 s.
 */
export async function follow(path, { token, signal, show, connected, broken, refused, patience = 35000 }) {
  let pause = 1000;
  while (!signal.aborted) {
    const silence = new AbortController();
    let watchdog = null;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => silence.abort(new Error(`it says nothing for ${patience / 1000} s`)), patience);
    };
    heard();
    try {
      const headers = token ? { authorization: `Bearer ${token}` } : {};
      const answer = await fetch(path, { headers, signal: AbortSignal.any([signal, silence.signal]) });
      if (answer.status === 401) return refused();
      if (!answer.ok) throw new Error((await answer.text()).trim() || `HTTP ${answer.status}`);
      const said = () => {
        heard();
        if (!signal.aborted) connected();
      };
      await read(answer.body, said, (data) => {
        pause = 1000;
        if (!signal.aborted) show(data);
      });
      throw new Error("the connection ended");
    } catch (error) {
      if (signal.aborted) return;
      broken(error.message);
    } finally {
      clearTimeout(watchdog);
    }
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, 15000);
  }
}

/** The `data` lines of server-sent events, each one JSON object; `heard` is told of whatever comes. */
async function read(body, heard, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data:")) take(JSON.parse(line.slice(5)));
  }
}
