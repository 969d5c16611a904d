// Server-sent events of JSON, followed until told otherwise. By fetch, since an EventSource sends no token.

/** Follows a stream and takes it up again when it breaks, until `signal` is aborted or a token is asked for. */
export async function follow(path, { token, signal, show, connected, broken, refused }) {
  let pause = 1000;
  while (!signal.aborted) {
    try {
      const headers = token ? { authorization: `Bearer ${token}` } : {};
      const answer = await fetch(path, { headers, signal });
      if (answer.status === 401) return refused();
      if (!answer.ok) throw new Error((await answer.text()).trim() || `HTTP ${answer.status}`);
      connected();
      await read(answer.body, (data) => {
        pause = 1000;
        if (!signal.aborted) show(data);
      });
      throw new Error("the connection ended");
    } catch (error) {
      if (signal.aborted) return;
      broken(error.message);
    }
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, 15000);
  }
}

/** The `data` lines of server-sent events, each one JSON object. */
async function read(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data:")) take(JSON.parse(line.slice(5)));
  }
}
