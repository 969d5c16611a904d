"""The variables that `rolegate mutate` gives to pods, read by the engines themselves: run.py ROLEGATE, within namespaces of its own.

Processes stand for the containers of pods. An address is looked up in a hosts file, which has the names that the Services of the
pods would publish, each at an address of loopback: a MASTER_ADDR that is no pod's name is not found, and one that is another
pod's leads to a process that does not listen. `unshare` gives this program a mount table with that file, and a loopback on which
nobody else listens; the machine has neither.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
PATIENCE = 300


def field(pod, path):
    """A field of the pod, as the downward API gives it."""
    key = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if key:
        return pod["metadata"].get(key[1], {}).get(key[2], "")
    return {
        "metadata.name": pod["metadata"].get("name", pod["spec"].get("hostname", "")),
        "metadata.namespace": pod["metadata"].get("namespace", "default"),
        "metadata.uid": "0",
        "status.podIP": "127.0.0.1",
    }[path]


def pods_of(rolegate, file):
    """What the pods of the file's workloads are created as."""
    output = subprocess.run([rolegate, "mutate", file, "-o", "json"], check=True, stdout=subprocess.PIPE).stdout
    return [item for item in json.loads(output)["items"] if item["kind"] == "Pod"]


def expanded(text, known):
    """As kubelet expands: `$(NAME)` of a known name, `$$` for `$`."""
    value = lambda found: "$" if found[0] == "$$" else known.get(found[1], found[0])
    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", value, text)


def environment(pod, container):
    known = {}
    for variable in container.get("env", []):
        path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        if path:
            known[variable["name"]] = field(pod, path)
        elif "valueFrom" not in variable:
            known[variable["name"]] = expanded(variable.get("value", ""), known)
    return known


def hosts(pods):
    """The lines of a hosts file: the DNS name of each pod that has one, and the short forms of it."""
    lines = ["127.0.0.1 localhost"]
    for number, pod in enumerate(pods, start=1):
        spec, namespace = pod["spec"], pod["metadata"].get("namespace", "default")
        if spec.get("hostname") and spec.get("subdomain"):
            name = f"{spec['hostname']}.{spec['subdomain']}.{namespace}.svc.cluster.local"
            lines.append(f"127.0.0.{number} {name}")
    return lines


def all_reduce(rolegate, file, command, processes):
    pods = pods_of(rolegate, FOLDER / "workloads" / file)
    # In place: the file of the machine's mount table stays as it is.
    Path("/etc/hosts").write_text("\n".join(hosts(pods)) + "\n")
    started = []
    for pod in pods:
        [container] = pod["spec"]["containers"]
        # gloo looks for an interface by the name of the host, which is the machine's here.
        own = {"PATH": os.environ["PATH"], "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        own |= environment(pod, container)
        started.append(subprocess.Popen([*command, FOLDER / "all_reduce.py"], env=own, text=True, stdout=subprocess.PIPE))
    try:
        said = "".join(process.communicate(timeout=PATIENCE)[0] for process in started).splitlines()
    finally:
        for process in started:
            process.kill()
    total = len(pods) * processes
    expected = [f"rank {rank} of {total}: {total * (total - 1) // 2}" for rank in range(total)]
    assert sorted(said, key=lambda line: int(line.split()[1])) == expected, f"{file}: {said}"
    print(f"{file}: {len(pods)} pods with {processes} each are one process group of {total}, and add up")


PROGRAMS = {
    ("vllm", "serve"): "vllm",
    ("python3", "-m", "sglang.launch_server"): "sglang",
    ("python3", "-m", "sglang_router.launch_router"): "sglang-router",
    ("python3", "-m", "dynamo.vllm"): "dynamo.vllm",
    ("vllm-router",): "vllm-router",
}


def parsed(engine, arguments):
    """What the parser of the engine makes of a command line."""
    own = os.environ | {"PYTHONWARNINGS": "ignore"}
    # Its parser has the defaults of a platform, which it cannot tell where there is no GPU.
    own |= {"VLLM_TARGET_DEVICE": "cpu"} if "vllm" in engine else {}
    command = [sys.executable, FOLDER / "parse.py", engine, *arguments]
    done = subprocess.run(command, env=own, text=True, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, f"{engine} {arguments}: {done.stderr[-2000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def command_lines(rolegate, file):
    """The command lines of the engines in the pods of a file: engine and arguments, each once."""
    lines = set()
    for pod in pods_of(rolegate, file):
        for container in pod["spec"]["containers"]:
            known = environment(pod, container)
            line = [expanded(word, known) for word in [*container.get("command", []), *container.get("args", [])]]
            engine = next((engine for start, engine in PROGRAMS.items() if tuple(line[: len(start)]) == start), None)
            if engine:
                start = next(start for start, known in PROGRAMS.items() if known == engine)
                lines.add((engine, *line[len(start) :]))
    return lines


def examples(rolegate):
    """A line of each engine, role and rank in the services; with no variable left in it."""
    files = sorted((ROOT / "examples/services").glob("*.yaml"))
    assert files
    for file in files:
        lines = command_lines(rolegate, file)
        # Leaders of all replicas of a role differ in nothing but the address of their first pod.
        alike = {tuple(re.sub(r"-\d+\.", "-0.", word) for word in line): line for line in lines}
        assert alike, f"{file.name}: no command line of an engine"
        for engine, *arguments in sorted(alike.values()):
            assert "$(" not in " ".join(arguments), f"{file.name}: {arguments}"
            parsed(engine, arguments)
            print(f"{file.name}: {engine} takes {' '.join(arguments)[:100]}…")


def flags_of_the_page():
    """Each flag that the table of docs/engines.md has a value for is one that its engine takes."""
    page = (ROOT / "docs/engines.md").read_text()
    values = {"PORT": "29600", "ADDR": "llm-0.llm.ns.svc.cluster.local", "DP_ADDRESS": "llm-0.llm.ns.svc.cluster.local"}
    for kind, required in [("vllm", []), ("sglang", ["--model-path=any"])]:
        table = page.split(f"\n## {kind}\n")[1].split("\n## ")[0]
        flags = re.findall(r"`(--[a-z-]+)=\$\(([A-Z_]+)\)`", table)
        assert flags, kind
        value = lambda name: next((value for end, value in values.items() if name.endswith(end)), "1")
        read = parsed(kind, required + [f"{flag}={value(name)}" for flag, name in flags])
        for flag, name in flags:
            assert read[flag[2:].replace("-", "_")] == value(name), f"{kind} {flag}: {read}"
        print(f"{kind}: takes {', '.join(flag for flag, _ in flags)}")


if __name__ == "__main__":
    rolegate = str(Path(sys.argv[1]).resolve())
    for file in ["stateful-set", "leader-worker-set", "role-based-group", "grove"]:
        all_reduce(rolegate, f"{file}.yaml", [sys.executable], 1)
    # As a module: the script in the virtual environment would name it.
    all_reduce(rolegate, "stateful-set-of-two-processes.yaml", [sys.executable, "-m", "torch.distributed.run"], 2)
    flags_of_the_page()
    examples(rolegate)
