//! Examples and exit codes for `--help` of each command and for `docs/cli.md`. The tests parse every example, and run
//! those that need no cluster.

use std::fmt::Write as _;

/// The end of a command's help.
#[derive(Clone, Copy, Debug)]
pub struct Examples {
    pub command: &'static str,
    /// Exit codes and their meanings.
    pub exits: &'static [(u8, &'static str)],
    /// Descriptions and command lines.
    pub examples: &'static [(&'static str, &'static str)],
}

/// Examples of every command, in the order of the help.
pub const EXAMPLES: &[Examples] = &[
    Examples {
        command: "serve",
        exits: &[(0, "ended by a signal"), (1, "could not start, or a part of it ended")],
        examples: &[
            (
                "Outside a cluster, for an API server on the same machine",
                "rolegate serve --kubeconfig ~/.kube/config --reach loopback --webhooks all",
            ),
            (
                "Two namespaces; a batch goes without pods that are missing for ten minutes",
                "rolegate serve --namespaces team-a,team-b --incomplete release-after=10m",
            ),
            ("A detailed log for a log pipeline", "rolegate serve --log rolegate=debug,warn --log-format json"),
        ],
    },
    Examples {
        command: "mutate",
        exits: &[(0, "all objects would be admitted"), (1, "an object would be refused"), (2, "a file cannot be read")],
        examples: &[
            ("The pods of these workloads", "rolegate mutate workloads.yaml --with group.yaml"),
            ("The patches only", "rolegate mutate workloads.yaml --with group.yaml -o patch"),
            (
                "An update of a workload",
                "rolegate mutate workloads.yaml --old workloads-before.yaml --with group.yaml -o diff",
            ),
            (
                "Output of kustomize or Helm",
                "kubectl kustomize overlays/prod | rolegate mutate - --with group.yaml -o yaml",
            ),
        ],
    },
    Examples {
        command: "check",
        exits: &[
            (0, "no object would be refused"),
            (1, "an object would be refused, or has a warning with --fail-on-warning"),
            (2, "a file cannot be read, or there is no object"),
        ],
        examples: &[
            ("A group with its workloads", "rolegate check group.yaml workloads.yaml"),
            ("An update", "rolegate check group.yaml --old group-before.yaml --with workloads.yaml"),
            ("A pull request on GitHub", "rolegate check . -o github"),
            ("Output of kustomize or Helm", "kubectl kustomize overlays/prod | rolegate check - --fail-on-warning"),
        ],
    },
    Examples {
        command: "plan",
        exits: &[
            (0, "all groups are admitted and, without --state, come up completely"),
            (1, "a group is not"),
            (2, "a file cannot be read or planned"),
        ],
        examples: &[
            ("The order of a group", "rolegate plan group.yaml --with workloads.yaml"),
            ("The same as a chart and as a picture", "rolegate plan group.yaml -o chart"),
            ("", "rolegate plan group.yaml -o svg > plan.svg"),
            (
                "The places of its batches on these nodes",
                "rolegate plan group.yaml --with workloads.yaml --with cluster.json",
            ),
            ("The next release, from these counts", "rolegate plan group.yaml --state counts.yaml"),
        ],
    },
    Examples {
        command: "fit",
        exits: &[
            (0, "every batch fits, or a size is found"),
            (1, "a batch or every size does not fit"),
            (2, "an object or a file cannot be read"),
        ],
        examples: &[
            ("A group of the cluster", "rolegate fit pd -n prod"),
            ("The same node by node", "rolegate fit pd -n prod -o wide"),
            (
                "A group that is not applied yet",
                "kubectl get nodes,pods -A -o json | rolegate fit group.yaml workloads.yaml --with -",
            ),
            ("Files only", "rolegate fit group.yaml --with workloads.yaml --with cluster.json"),
            ("Segment sizes that fill racks", "rolegate fit pd -n prod --suggest --domain example.com/rack"),
        ],
    },
    Examples {
        command: "status",
        exits: &[(0, "the groups could be read"), (1, "the groups could not be read")],
        examples: &[
            ("Every group of the cluster", "rolegate status -A"),
            ("One group with its conditions, again at each change", "rolegate status pd -n prod --watch"),
            ("One group batch by batch", "rolegate status pd -n prod -o wide"),
            (
                "Names of groups that hold pods",
                "rolegate status -A -o json | jq -r '.groups[] | select(.held > 0).name'",
            ),
        ],
    },
    Examples {
        command: "explain",
        exits: &[(0, "the object exists"), (1, "the object does not exist, or cannot be read")],
        examples: &[
            ("Why a pod does not start", "rolegate explain pod prefill-17 -n prod"),
            ("Why a group waits, until interrupted", "rolegate explain group pd -n prod --watch"),
            ("The reason only", "rolegate explain pod prefill-17 -o json | jq -r .reason"),
            ("Group, role and missing labels of a workload", "rolegate explain workload sts/prefill -n prod"),
        ],
    },
    Examples {
        command: "adopt",
        exits: &[(0, "done; with --dry-run: would be allowed"), (1, "refused, failed, or not confirmed")],
        examples: &[
            ("Changes and rollouts, without making them", "rolegate adopt sts/llm-prefill sts/llm-decode --dry-run"),
            (
                "Two StatefulSets and a router, with role names",
                "rolegate adopt prefill=sts/serve-p decode=sts/serve-d deploy/router --group llm -n prod",
            ),
            (
                "Segments of a given size, and the changes as YAML",
                "rolegate adopt lws/prefill lws/decode --group llm --segment-size prefill=4,decode=2 --yes -o yaml",
            ),
        ],
    },
    Examples {
        command: "release",
        exits: &[(0, "all gates were lifted"), (1, "a gate could not be lifted, or not confirmed")],
        examples: &[
            ("One pod, after confirmation", "rolegate release pod prefill-17 -n prod"),
            ("All pods of a group, without confirmation", "rolegate release group pd -n prod --yes"),
            ("All pods and frozen rollouts of a namespace", "rolegate release --all -n prod"),
        ],
    },
    Examples {
        command: "resume",
        exits: &[(0, "all waiting groups were resumed"), (1, "a group could not be resumed, or not confirmed")],
        examples: &[
            (
                "A group whose rollout, canary or recovery is paused, or whose recovery is exhausted",
                "rolegate resume pd -n prod",
            ),
            ("Every group whose recovery is", "rolegate resume --all-recoveries"),
        ],
    },
    Examples {
        command: "rollback",
        exits: &[
            (0, "the rollouts are asked to go back, or none is under way"),
            (1, "the request could not be written, or not confirmed"),
        ],
        examples: &[
            ("A group whose rollout is bad", "rolegate rollback pd -n prod"),
            ("The coordinations that would go back", "rolegate rollback pd -n prod --dry-run -o json"),
        ],
    },
    Examples {
        command: "doctor",
        exits: &[(0, "no error was found"), (1, "an error was found"), (2, "the cluster cannot be reached")],
        examples: &[
            ("The installation", "rolegate doctor"),
            ("The dry-run pod in another namespace", "rolegate doctor --try-in prod"),
            ("The errors only", "rolegate doctor -o json | jq '.findings[] | select(.level == \"error\")'"),
        ],
    },
    Examples {
        command: "uninstall",
        exits: &[(0, "nothing is left"), (1, "an object is left, or not confirmed")],
        examples: &[
            ("The changes, without making them", "rolegate uninstall --dry-run"),
            ("Uninstall, after confirmation", "rolegate uninstall"),
            ("Without confirmation, and the changes as YAML", "rolegate uninstall --yes -o yaml"),
        ],
    },
    Examples {
        command: "completions",
        exits: &[(0, "printed")],
        examples: &[
            ("For this shell", "source <(rolegate completions bash)"),
            ("For later shells", "rolegate completions zsh > \"${fpath[1]}/_rolegate\""),
            ("", "rolegate completions fish > ~/.config/fish/completions/rolegate.fish"),
        ],
    },
    Examples {
        command: "manifests",
        exits: &[(0, "printed")],
        examples: &[
            ("Install", "rolegate manifests --image YOURS | kubectl apply --server-side -f -"),
            (
                "Three replicas on three nodes, certificates by cert-manager",
                "rolegate manifests --image YOURS --replicas 3 --spread required --certificates cert-manager",
            ),
            ("The definitions, those of RoleBasedGroup too", "rolegate manifests --part crds,optional-crds"),
            ("The rights and the policies that limit them", "rolegate manifests --part rbac,containment"),
            ("With flags of `serve`", "rolegate manifests --image YOURS -- --incomplete release-after=10m"),
        ],
    },
    Examples {
        command: "version",
        exits: &[(0, "printed")],
        examples: &[("The version", "rolegate version"), ("For a script", "rolegate version -o json")],
    },
];

impl Examples {
    /// Formats the end of a help text; `program` replaces `rolegate` in command lines.
    pub fn help(&self, program: &str) -> String {
        let mut text = "Examples:\n".to_owned();
        for (does, line) in self.examples {
            let comment = if does.is_empty() { String::new() } else { format!("  # {does}\n") };
            let line = line.replace("rolegate ", &format!("{program} "));
            _ = writeln!(text, "{comment}  {line}");
        }
        text.push_str("\nExit codes:\n");
        for (code, says) in self.exits {
            _ = writeln!(text, "  {code}  {says}");
        }
        text
    }
}
