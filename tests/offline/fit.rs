//! `rolegate fit`, as users run it: unreadable input, and a large cluster.

use std::fs;

use serde_json::{Value, json};

use crate::answers::{Ran, folder, ran};
use crate::build::{self, with};

/// Returns objects as one file.
fn file<'a>(objects: impl IntoIterator<Item = &'a Value>) -> String {
    objects.into_iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n")
}

fn group(replicas: u32) -> Value {
    let template = json!({ "spec": { "containers": [{ "resources": { "limits": { "nvidia.com/gpu": 1 } } }] } });
    let affinity = json!({ "strategy": "RequireSegmentAffinity", "topologyKey": "rack" });
    let segments = build::segments(&[("prefill", 8)], &json!({ "topologyAffinity": affinity }));
    let mut group = build::group("llm", &[("prefill", replicas)], &json!([build::coordination("p", &segments)]));
    group["spec"]["roles"][0]["template"] = template;
    group
}

fn node(number: u32) -> Value {
    let room = json!({ "nvidia.com/gpu": "8", "pods": "110", "cpu": "64", "memory": "512Gi" });
    build::node(&format!("node-{number}"), &json!({ "rack": format!("rack-{}", number / 10) }), &room)
}

/// What `fit` says of a group on a cluster.
fn on(group: &Value, cluster: &[Value], more: &str) -> Ran {
    let folder = folder(&[("group.json", &group.to_string()), ("cluster.yaml", &file(cluster))]);
    ran(folder, &format!("fit group.json --with cluster.yaml {more}"))
}

#[test]
fn what_cannot_be_read_is_named_and_nothing_is_answered() {
    let mut broken = node(1);
    broken["status"]["allocatable"]["nvidia.com/gpu"] = json!("eight");
    let folder = folder(&[
        ("group.json", &group(8).to_string()),
        ("broken.json", &broken.to_string()),
        ("half.json", "{\"kind\": \"List\", \"items\": ["),
    ]);
    let cases = [
        ("group.json --with half.json", "half.json:"),
        ("group.json", "no nodes in the files"),
        ("group.json --with broken.json", r#"broken.json: unreadable: Node "node-1": "eight" is no quantity"#),
        ("broken.json", "\"eight\" is no quantity"),
        ("absent.yaml --with broken.json", "absent.yaml"),
    ];
    for (line, expected) in cases {
        let ran = ran(&folder, &format!("fit {line}"));
        assert!(ran.code == Some(2) && ran.err.contains(expected) && ran.out.is_empty(), "{line}: {ran:?}");
    }
}

/// A partly read cluster gives no answer: all three commands name what they cannot read, once, and exit with 2.
#[test]
fn what_gives_or_takes_an_unknown_amount_of_room_is_named_by_every_command() {
    let folder = folder(&[("group.json", &group(8).to_string())]);
    let write = |name: &str, objects: &[&Value]| {
        fs::write(folder.path().join(name), file(objects.iter().copied())).unwrap();
    };
    let mut no_quantity = node(1);
    no_quantity["status"]["allocatable"]["cpu"] = json!("many");
    write("node.yaml", &[&node(2), &no_quantity]);
    let asks = json!([{ "name": "main", "resources": { "requests": { "cpu": "one" } } }]);
    let meta = json!({ "name": "other", "namespace": "default" });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": { "nodeName": "node-2", "containers": asks } });
    write("pod.yaml", &[&node(2), &pod]);
    let set = |spec: Value| json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec });
    let template = json!({ "spec": { "containers": [{ "name": "main" }] } });
    write("many.yaml", &[&node(2), &set(json!({ "replicas": 200_000, "template": template }))]);
    write("shape.yaml", &[&node(2), &set(json!({ "replicas": "three" }))]);
    let cases = [
        ("node.yaml", r#"Node "node-1": "many" is no quantity"#),
        ("pod.yaml", r#"Pod "other": "one" is no quantity"#),
        ("many.yaml", r#"StatefulSet "other": "#),
        ("shape.yaml", r#"StatefulSet "other": spec.replicas: must be a whole number, and is "three""#),
    ];
    for (file, expected) in cases {
        for command in ["fit", "plan", "check"] {
            let Ran { code, out, err } = ran(&folder, &format!("{command} group.json --with {file}"));
            let said = out + &err;
            assert_eq!(code, Some(2), "{command} {file}: {said}");
            let lines: Vec<_> = said.lines().filter(|line| line.starts_with(file)).collect();
            assert!(lines.len() == 1 && lines[0].contains(expected), "{command} {file}: {said}");
        }
    }
}

#[test]
fn the_text_names_batches_domains_and_what_is_short() {
    let Ran { code, out, .. } = on(&group(24), &[node(1), node(11)], "");
    assert_eq!(code, Some(1));
    assert_eq!(
        out,
        "default/llm, coordination \"p\": 2 of 3 segments fit\n  \
         nvidia.com/gpu by rack\n    \
         rack-0  [++++++++++++++++++++++++++++++]  8 for segment 1, 0 of 8 free\n    \
         rack-1  [++++++++++++++++++++++++++++++]  8 for segment 2, 0 of 8 free\n  \
         segment 1 (8 prefill): rack-0 (node-1 × 8)\n  \
         segment 2 (8 prefill): rack-1 (node-11 × 8)\n  \
         segment 3 (8 prefill): no rack fits segment 3: best rack-0 fits 0 of 8 pods, short of 8 nvidia.com/gpu\n\
         # used  + batches go here  x closed to them  . free\n"
    );
}

/// The bars show used, taken, closed and free room of each domain, and of its nodes if requested.
#[test]
fn domains_and_nodes_are_drawn_with_their_room() {
    let mut cordoned = node(2);
    cordoned["spec"] = json!({ "unschedulable": true });
    let asks = json!([{ "name": "main", "resources": { "limits": { "nvidia.com/gpu": 4 } } }]);
    let other = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "other" }, "spec": { "nodeName": "node-3", "containers": asks },
    });
    let outside = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "no-rack" } });
    let objects = [node(1), cordoned, node(3), node(11), outside, other];
    let drawn = |more: &str| {
        let Ran { code, out, .. } = on(&group(8), &objects, more);
        assert_eq!(code, Some(0));
        out.split_inclusive('\n').filter(|line| line.starts_with("    ")).collect::<String>()
    };
    // The smallest rack with enough room is chosen.
    assert_eq!(
        drawn(""),
        "    rack-1  [++++++++++++++++++++++++++++++]  8 for segment 1, 0 of 8 free\n    \
         rack-0  [#####xxxxxxxxxx...............]  12 of 24 free, 8 closed\n"
    );
    assert_eq!(
        drawn("-o wide"),
        "    rack-1     [++++++++++++++++++++++++++++++]  8 for segment 1, 0 of 8 free\n      \
             node-11  [++++++++++++++++++++++++++++++]  8 for segment 1, 0 of 8 free\n    \
         rack-0     [#####xxxxxxxxxx...............]  12 of 24 free, 8 closed\n      \
             node-1   [..............................]  8 of 8 free\n      \
             node-2   [xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]  0 of 8 free, 8 closed\n      \
             node-3   [###############...............]  4 of 8 free\n"
    );
}

#[test]
fn many_domains_are_summed_up() {
    let nodes: Vec<_> = (0..300).map(node).collect();
    let lines = |more: &str| on(&group(8), &nodes, more).out.lines().map(str::to_owned).collect::<Vec<_>>();
    let shown = lines("");
    assert_eq!(shown.iter().filter(|line| line.starts_with("    rack-")).count(), 16);
    let more = "    and 14 more domains with 1120 free: `-o wide` has each".to_owned();
    assert!(shown.contains(&more), "{shown:?}");
    let wide = lines("-o wide");
    assert_eq!(wide.iter().filter(|line| line.starts_with("      node-")).count(), 300);
}

#[test]
fn a_cluster_of_thousands_of_nodes_as_kubectl_prints_it_is_read() {
    let recorded = include_str!("../fixtures/reviews/sts-parallel/pod-create.json");
    let recorded: Value = serde_json::from_str(recorded).unwrap();
    let pod = |number: u32| {
        let mut pod = recorded["request"]["object"].clone();
        pod["metadata"]["name"] = json!(format!("other-{number}"));
        pod["spec"]["nodeName"] = json!(format!("node-{}", 4000 + number % 1000));
        pod
    };
    let nodes: Vec<_> = (0..5000).map(node).chain((0..500).map(pod)).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": nodes });
    let list = serde_json::to_string_pretty(&list).unwrap();
    let folder = folder(&[("group.json", &group(800).to_string()), ("cluster.json", &list)]);
    let answer = ran(folder, "fit group.json --with cluster.json -o json").json();
    assert_eq!(answer.pointer("/groups/0/coordinations/0/fits").unwrap().as_array().unwrap().len(), 100);
}

/// Two racks of ten nodes with eight devices each: a segment may have at most eighty replicas.
#[test]
fn sizes_are_suggested_that_fill_the_racks() {
    let nodes: Vec<_> = (0..20).map(node).collect();
    let suggest = |more: &str| on(&group(96), &nodes, &format!("--suggest {more}"));
    let said = suggest("");
    let expected = "\
default/llm, coordination \"p\": segments in the ratio of 1 prefill
  160 nvidia.com/gpu free in 2 domains of rack
  SEGMENT     WANTED  FIT  UNUSED
  16 prefill  6       10   0
  8 prefill   12      20   0       as written
  4 prefill   24      40   0
  2 prefill   48      80   0
  1 prefill   96      160  0
  80 prefill  2       2    0       the last one wanted is smaller
  40 prefill  3       4    0       the last one wanted is smaller
  20 prefill  5       8    0       the last one wanted is smaller
  10 prefill  10      16   0       the last one wanted is smaller
  5 prefill   20      32   0       the last one wanted is smaller
  and 54 more sizes: `-o wide` has each
  not tried: 16 other sizes; at most 64 are, first those that divide the replicas evenly
";
    assert_eq!((said.code, said.out.as_str()), (Some(0), expected));
    assert_eq!(suggest("-o wide").out.lines().count(), 64 + 4);
    let said = suggest("--domain kubernetes.io/hostname -o json");
    let why = json!("no node with the label kubernetes.io/hostname takes its pods");
    assert_eq!((said.code, said.json().pointer("/groups/0/suggestions/0/error")), (Some(2), Some(&why)));
    let answer = suggest("-o json").json();
    let first = json!({ "segmentSize": { "prefill": 16 }, "wanted": 6, "even": true, "fits": 10, "unused": 0 });
    assert_eq!(answer.pointer("/groups/0/suggestions/0/sizes/0"), Some(&first));
    assert_eq!(answer.pointer("/groups/0/suggestions/0/untried"), Some(&json!(16)));
}

#[test]
fn a_group_of_which_no_domain_holds_a_segment_gets_no_size() {
    let mut large = group(4);
    large["spec"]["roles"][0]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = json!(9);
    let Ran { code, out, .. } = on(&large, &[node(1)], "--suggest");
    assert!(code == Some(1) && out.ends_with("  no domain holds a segment of 1 prefill\n"), "{out}");
    assert_eq!(on(&large, &[node(1)], "--domain rack").code, Some(2), "a domain is asked for with --suggest only");
}

/// Segments of two prefills of one device and a decode of eight, in racks.
fn pairs(segments: u32) -> Value {
    let role = |name: &str, replicas: u32, devices: u32| {
        let limits = json!({ "limits": { "nvidia.com/gpu": devices } });
        json!({ "name": name, "replicas": replicas, "template": { "spec": { "containers": [{ "resources": limits }] } } })
    };
    let mut pairs = group(1);
    pairs["spec"]["roles"] = json!([role("prefill", segments * 2, 1), role("decode", segments, 8)]);
    pairs["spec"]["coordination"][0]["strategy"]["segmentPlacement"]["segmentSize"] =
        json!({ "prefill": 2, "decode": 1 });
    pairs
}

fn shape(name: &str, rack: &str, devices: u32) -> Value {
    let room = json!({ "nvidia.com/gpu": devices.to_string(), "pods": "110" });
    with(build::node(name, &json!({ "rack": rack }), &room), &json!({ "status": { "conditions": null } }))
}

#[test]
fn missing_nodes_are_counted_by_shape_and_by_domain() {
    let shapes = [shape("small-0", "rack-0", 2), shape("large-0", "rack-0", 8), shape("large-1", "rack-1", 8)];
    let only_small = [shape("small", "rack-0", 2)];
    let folder = folder(&[
        ("group.json", &pairs(3).to_string()),
        ("nodes.json", &file(&[node(1)])),
        ("none.json", &json!({ "apiVersion": "v1", "kind": "List", "items": [] }).to_string()),
        ("shapes.yaml", &file(&shapes)),
        ("small.yaml", &file(&only_small)),
        ("group-as-shape.yaml", &pairs(3).to_string()),
        ("broken.yaml", &file(&[node(1)]).replace("\"8\"", "\"eight\"")),
    ]);
    let lacks = |nodes: &str, shapes: &str| {
        let Ran { code, out, .. } = ran(&folder, &format!("fit group.json --with {nodes} --provision {shapes}"));
        let lines = out.lines().filter(|line| line.contains("lacks") || line.contains("no number"));
        (code, lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>())
    };
    // One node is there with room for the decode of the first segment.
    let expected = ["segment 1 lacks 1 × small-0 in rack-0", "segment 2 lacks 1 × large-0 and 1 × small-0 in rack-0"];
    let (code, lines) = lacks("nodes.json", "shapes.yaml");
    assert_eq!((code, &lines[..2]), (Some(1), &expected.map(str::to_owned)[..]));
    assert_eq!(lines.len(), 3);
    // From no node at all.
    assert_eq!(lacks("none.json", "shapes.yaml").1.len(), 3);
    // No number of small nodes takes a decode: what comes after it is not looked at.
    let (_, lines) = lacks("none.json", "small.yaml");
    assert_eq!(lines, ["segment 1 fits with no number of the new nodes"]);
    let answer = ran(&folder, "fit group.json --with nodes.json --provision shapes.yaml -o json").json();
    let first = json!({ "index": 0, "domain": "rack-0", "nodes": { "small-0": 1 } });
    assert_eq!(answer.pointer("/groups/0/coordinations/0/missing/0"), Some(&first));
    for (file, expected) in [("group-as-shape.yaml", "is no Node"), ("broken.yaml", "\"eight\" is no quantity")] {
        let ran = ran(&folder, &format!("fit group.json --with nodes.json --provision {file}"));
        assert!(ran.code == Some(2) && ran.err.contains(expected), "{file}: {ran:?}");
    }
}
