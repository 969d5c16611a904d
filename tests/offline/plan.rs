//! `rolegate plan`, as users run it: its text, and messages about unreadable input.

use crate::answers::{folder, ran};

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
    let ran = ran(folder(&[("group.yaml", GROUP)]), "plan group.yaml");
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
    assert_eq!((ran.code, &*ran.out), (Some(0), expected));
}

#[test]
fn a_misspelt_field_is_said_with_what_was_meant_and_refused_where_that_is_asked() {
    let misspelt = GROUP.replace("decode: 1}}}}", "decode: 1}, progresion: Parallel}}}");
    let folder = folder(&[("group.yaml", &misspelt)]);
    let field = "spec.coordination[0].strategy.segmentPlacement.progresion";
    let why = "no such field: it has no effect; did you mean \"progression\"? [unknown-field]";
    let warned = ran(&folder, "plan group.yaml");
    let is_said = warned.out.contains(&format!("\n  warning: {field}: {why}\n"));
    assert!(warned.code == Some(0) && is_said, "{warned:?}");
    assert_eq!(ran(&folder, "plan group.yaml -o json").json()["groups"][0]["warnings"][0]["field"], field);
    let refused = ran(&folder, "plan group.yaml --strict");
    let is_said = refused.out.contains(&format!("\n  error: {field}: Invalid value: {why}\n"));
    assert!(refused.code == Some(1) && is_said && !refused.out.contains("RELEASE"), "{refused:?}");
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
    let cases = [
        ("absent.yaml", "absent.yaml: unreadable: "),
        ("group.yaml --with absent.yaml", "absent.yaml: unreadable: "),
        ("group.yaml --state absent.yaml", "absent.yaml: unreadable: "),
        ("group.yaml --state typo.yaml", "typo.yaml: unreadable: roles.prefill.redy: no such field"),
        ("group.yaml --state role.yaml", "role.yaml: unreadable: roles.prefil: no group has this role"),
        ("service.yaml", "rolegate: no RoleBasedGroup and no RoleCoordination in the files"),
        ("huge.yaml -o json", ""),
    ];
    for (line, message) in cases {
        let ran = ran(&folder, &format!("plan {line}"));
        assert!(ran.code == Some(2) && ran.err.starts_with(message), "{line}: {ran:?}");
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
    let plan = |group: &str| {
        let folder = folder(&[("group.yaml", group), ("nodes.yaml", nodes)]);
        ran(folder, "plan group.yaml --with nodes.yaml")
    };
    let whole = plan(&group);
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
    assert_eq!((whole.code, &*whole.out), (Some(1), expected));
    let text = plan(&group.replace(", whole: true", "")).out;
    assert!(text.contains("not complete after 2 releases") && text.contains("5/6 pods ready"), "{text}");
    assert!(text.contains("what fits of it goes, unless `whole: true` keeps it back"), "{text}");
}
