//! `rolegate plan`, as users run it: its text, and messages about unreadable input.

use std::path::Path;
use std::process::Output;

use crate::answers::{folder, rolegate};

fn plan(folder: &Path, arguments: &[&str]) -> Output {
    rolegate(folder, "plan", arguments)
}

const GROUP: &str = "\
apiVersion: workloads.x-k8s.io/v1alpha1
kind: RoleBasedGroup
metadata: {name: llm, namespace: prod}
spec:
  roles: [{name: prefill, replicas: 4}, {name: decode, replicas: 2}]
  coordination: [{name: pd, strategy: {segmentPlacement: {segmentSize: {prefill: 2, decode: 1}}}}]
";

#[test]
fn people_read_which_replicas_go_in_which_release() {
    let folder = folder(&[("group.yaml", GROUP)]);
    let output = plan(folder.path(), &["group.yaml"]);
    assert_eq!(output.status.code(), Some(0));
    let expected = "\
RoleBasedGroup prod/llm: admitted, complete after 2 releases
  coordination \"pd\": segments of 1 decode and 2 prefill, OrderedReady; each pod is created with the gate rolegate.dev/hold
  RELEASE  PREFILL  DECODE  REPLICAS
  1        0-1      0       3/6
  2        2-3      1       6/6
  AT THE END                STATUS  REASON            MESSAGE
  Ready                     True    AllReplicasReady  6/6 pods ready
  MinimumSegmentsAvailable  True    AllSegmentsReady  2/2 segments ready (6/6 pods)
  Progressing               True    Complete
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn a_misspelt_field_is_said_with_what_was_meant_and_refused_where_that_is_asked() {
    let misspelt = GROUP.replace("decode: 1}}}}", "decode: 1}, progresion: Parallel}}}");
    let folder = folder(&[("group.yaml", &misspelt)]);
    let field = "spec.coordination[0].strategy.segmentPlacement.progresion";
    let why = "no such field: it has no effect; did you mean \"progression\"? [unknown-field]";
    let output = plan(folder.path(), &["group.yaml"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(&format!("\n  warning: {field}: {why}\n")), "{text}");
    let output = plan(folder.path(), &["group.yaml", "-o", "json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["groups"][0]["warnings"][0]["field"], field);
    let output = plan(folder.path(), &["group.yaml", "--strict"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains(&format!("\n  error: {field}: Invalid value: {why}\n")) && !text.contains("RELEASE"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_read_is_said_and_ends_with_2() {
    let folder = folder(&[
        ("group.yaml", GROUP),
        ("typo.yaml", "roles: {prefill: {redy: 3}}"),
        ("role.yaml", "roles: {prefil: {ready: 3}}"),
        ("service.yaml", "{apiVersion: v1, kind: Service, metadata: {name: x}}"),
        ("huge.yaml", &GROUP.replace("replicas: 4", "replicas: 2147483647")),
    ]);
    let cases: &[(&[&str], &str)] = &[
        (&["absent.yaml"], "absent.yaml: unreadable: "),
        (&["group.yaml", "--with", "absent.yaml"], "absent.yaml: unreadable: "),
        (&["group.yaml", "--state", "absent.yaml"], "absent.yaml: unreadable: "),
        (&["group.yaml", "--state", "typo.yaml"], "typo.yaml: unreadable: roles.prefill.redy: no such field"),
        (&["group.yaml", "--state", "role.yaml"], "role.yaml: unreadable: roles.prefil: no group has this role"),
        (&["service.yaml"], "rolegate: no RoleBasedGroup and no RoleCoordination in the files"),
        (&["huge.yaml", "-o", "json"], ""),
    ];
    for (arguments, message) in cases {
        let output = plan(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.starts_with(message), "{arguments:?}: {errors}");
    }
}

/// Two segments of three pods, on a node for five.
#[test]
fn what_fits_nowhere_is_shown_neither_as_released_nor_as_ready() {
    let group = GROUP.replace(
        "replicas: 4}",
        "replicas: 4, template: &t {spec: {containers: [{resources: {requests: {cpu: 1}}}]}}}",
    );
    let group =
        group.replace("replicas: 2}", "replicas: 2, template: *t}").replace("decode: 1}}", "decode: 1}, whole: true}");
    let nodes = "\
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: 5, pods: 9}, conditions: [{type: Ready, status: 'True'}]}
";
    let folder = folder(&[("group.yaml", &group), ("nodes.yaml", nodes)]);
    let output = plan(folder.path(), &["group.yaml", "--with", "nodes.yaml"]);
    let expected = "\
RoleBasedGroup prod/llm: admitted, not complete after 1 release
  coordination \"pd\": segments of 1 decode and 2 prefill, OrderedReady; each pod is created with the gate rolegate.dev/hold
  RELEASE  PREFILL  DECODE  REPLICAS
  1        0-1      0       3/6
  segment 2 does not fit: there is room for 2 of 3 pods, short of 1 cpu (NoRoom, 3 pods)
  AT THE END                STATUS  REASON               MESSAGE
  Ready                     False   PartialDeployment    3/6 pods ready
  MinimumSegmentsAvailable  True    MinimumSegmentReady  1/2 segments ready (3/6 pods)
  Progressing               True    Progressing
  coordination \"pd\" goes to
    segment 1 (2 prefill and 1 decode): a × 3
    segment 2 (2 prefill and 1 decode): segment 2 does not fit: there is room for 2 of 3 pods, short of 1 cpu
";
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stdout)), (Some(1), expected));
    let plain = group.replace(", whole: true", "");
    let folder = crate::answers::folder(&[("group.yaml", &plain), ("nodes.yaml", nodes)]);
    let output = plan(folder.path(), &["group.yaml", "--with", "nodes.yaml"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("not complete after 2 releases") && text.contains("5/6 pods ready"), "{text}");
    assert!(text.contains("what fits of it goes, unless `whole: true` keeps it back"), "{text}");
}
