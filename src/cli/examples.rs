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
                "Two namespaces, where a batch goes without pods that nobody makes for ten minutes",
                "rolegate serve --namespaces team-a,team-b --incomplete release-after=10m",
            ),
            (
                "Everything that it does, for a log pipeline",
                "rolegate serve --log rolegate=debug,warn --log-format json",
            ),
        ],
    },
    Examples {
        command: "mutate",
        exits: &[(0, "all would be admitted"), (1, "one would be refused"), (2, "something cannot be read")],
        examples: &[
            ("What the pods of these workloads would be born with", "rolegate mutate workloads.yaml --with group.yaml"),
            ("The patches alone", "rolegate mutate workloads.yaml --with group.yaml -o patch"),
            (
                "What becomes of an update of a workload",
                "rolegate mutate workloads.yaml --old workloads-before.yaml --with group.yaml -o diff",
            ),
            (
                "What kustomize or Helm prints",
                "kubectl kustomize overlays/prod | rolegate mutate - --with group.yaml -o yaml",
            ),
        ],
    },
    Examples {
        command: "check",
        exits: &[
            (0, "nothing would be refused"),
            (1, "something would be, or is warned about with --fail-on-warning"),
            (2, "something cannot be read, or there is no object"),
        ],
        examples: &[
            ("A group with its workloads", "rolegate check group.yaml workloads.yaml"),
            ("Whether a change is allowed", "rolegate check group.yaml --old group-before.yaml --with workloads.yaml"),
            ("A pull request, with marks on its lines", "rolegate check . -o github"),
            ("What kustomize or Helm prints", "kubectl kustomize overlays/prod | rolegate check - --fail-on-warning"),
        ],
    },
    Examples {
        command: "plan",
        exits: &[
            (0, "all groups are admitted and come up completely; with --state: are admitted"),
            (1, "one is not"),
            (2, "something cannot be read or planned"),
        ],
        examples: &[
            ("In what order a group comes up", "rolegate plan group.yaml --with workloads.yaml"),
            ("The same as a chart, and as a picture", "rolegate plan group.yaml -o chart"),
            ("", "rolegate plan group.yaml -o svg > plan.svg"),
            (
                "Where its batches go on these nodes",
                "rolegate plan group.yaml --with workloads.yaml --with cluster.json",
            ),
            ("What would be released next, from these counts", "rolegate plan group.yaml --state counts.yaml"),
        ],
    },
    Examples {
        command: "fit",
        exits: &[(0, "every batch fits"), (1, "one does not"), (2, "something cannot be read or told")],
        examples: &[
            ("How many batches of a group of the cluster fit, and where", "rolegate fit pd -n prod"),
            ("The same node by node", "rolegate fit pd -n prod -o wide"),
            (
                "A group that is not applied yet",
                "kubectl get nodes,pods -A -o json | rolegate fit group.yaml workloads.yaml --with -",
            ),
            ("Files alone", "rolegate fit group.yaml --with workloads.yaml --with cluster.json"),
        ],
    },
    Examples {
        command: "test",
        exits: &[
            (0, "all cases are as expected, or were updated"),
            (1, "one is not"),
            (2, "something cannot be read or written, or there is no case"),
        ],
        examples: &[
            ("Every case of a folder", "rolegate test cases"),
            ("Some of them, each by its name", "rolegate test cases --name rollout -o wide"),
            ("In CI, with a report", "rolegate test cases --junit junit.xml"),
            ("What comes out is right now: write it down", "rolegate test cases --update"),
        ],
    },
    Examples {
        command: "status",
        exits: &[(0, "the groups could be read"), (1, "they could not")],
        examples: &[
            ("Every group of the cluster", "rolegate status -A"),
            ("One group with its conditions, again whenever something changes", "rolegate status pd -n prod --watch"),
            ("One group batch by batch", "rolegate status pd -n prod -o wide"),
            (
                "Names of groups that hold pods",
                "rolegate status -A -o json | jq -r '.groups[] | select(.held > 0).name'",
            ),
        ],
    },
    Examples {
        command: "explain",
        exits: &[(0, "the object is there, whatever it waits for"), (1, "it is not, or cannot be read")],
        examples: &[
            ("Why a pod does not start, and what one can do", "rolegate explain pod prefill-17 -n prod"),
            ("Why a group does not go on, until interrupted", "rolegate explain group pd -n prod --watch"),
            ("The reason alone", "rolegate explain pod prefill-17 -o json | jq -r .reason"),
            (
                "Which group and role a workload is of, and what is missing",
                "rolegate explain workload sts/prefill -n prod",
            ),
        ],
    },
    Examples {
        command: "adopt",
        exits: &[(0, "done; with --dry-run: would be allowed"), (1, "refused, failed, or nobody said yes")],
        examples: &[
            ("What would be done, and what would roll", "rolegate adopt sts/llm-prefill sts/llm-decode --dry-run"),
            (
                "Two StatefulSets and a router, by other names than their roles",
                "rolegate adopt prefill=sts/serve-p decode=sts/serve-d deploy/router --group llm -n prod",
            ),
            (
                "Segments of a size of their own, and an account of it",
                "rolegate adopt lws/prefill lws/decode --group llm --segment-size prefill=4,decode=2 --yes -o yaml",
            ),
        ],
    },
    Examples {
        command: "release",
        exits: &[(0, "all could be lifted"), (1, "one could not, or nobody said yes")],
        examples: &[
            ("One pod, whatever it waits for; it asks first", "rolegate release pod prefill-17 -n prod"),
            ("All pods of a group, without a question", "rolegate release group pd -n prod --yes"),
            ("All pods and frozen rollouts of a namespace", "rolegate release --all -n prod"),
        ],
    },
    Examples {
        command: "resume",
        exits: &[(0, "all go on that wait, or none does"), (1, "one could not be told")],
        examples: &[
            ("A group whose recovery is paused, or was exhausted", "rolegate resume pd -n prod"),
            ("Every group whose recovery waits for a person", "rolegate resume --all-recoveries"),
        ],
    },
    Examples {
        command: "doctor",
        exits: &[(0, "no error was found"), (1, "one was"), (2, "the cluster cannot be reached")],
        examples: &[
            ("The installation, and how to mend it", "rolegate doctor"),
            ("A dry-run pod in a namespace that lets you create one", "rolegate doctor --try-in prod"),
            ("The errors alone", "rolegate doctor -o json | jq '.findings[] | select(.level == \"error\")'"),
        ],
    },
    Examples {
        command: "uninstall",
        exits: &[(0, "nothing is left"), (1, "something is, or nobody said yes")],
        examples: &[
            ("What would be done", "rolegate uninstall --dry-run"),
            ("Do it; it asks first", "rolegate uninstall"),
            ("Without a question, with an account of it", "rolegate uninstall --yes -o yaml"),
        ],
    },
    Examples {
        command: "completions",
        exits: &[(0, "printed")],
        examples: &[
            ("For this shell", "source <(rolegate completions bash)"),
            ("For all to come", "rolegate completions zsh > \"${fpath[1]}/_rolegate\""),
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
            ("The rights and what contains them", "rolegate manifests --part rbac,containment"),
            ("With flags of `serve`", "rolegate manifests --image YOURS -- --incomplete release-after=10m"),
        ],
    },
    Examples {
        command: "crds",
        exits: &[(0, "printed, or written"), (1, "could not be written")],
        examples: &[
            ("RoleCoordination and ClusterTopology", "rolegate crds | kubectl apply --server-side -f -"),
            ("RoleBasedGroup, on a cluster without an RBG operator", "rolegate crds --optional"),
            ("A file for each", "rolegate crds --output ."),
        ],
    },
    Examples {
        command: "version",
        exits: &[(0, "printed")],
        examples: &[("Which release this is", "rolegate version"), ("For a script", "rolegate version -o json")],
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
