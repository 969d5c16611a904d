//! The drawings of `rolegate plan`: the chart and the picture.

use std::fmt::Write as _;

use roxmltree::{Document, Node};
use serde_json::Value;

use crate::answers::{Ran, folder, ran};

/// Returns a group of two roles and a router, released in batches of 2 and 1.
fn group(name: &str, batches: u32) -> String {
    format!(
        "apiVersion: workloads.x-k8s.io/v1alpha1\n\
         kind: RoleBasedGroup\n\
         metadata: {{name: {name:?}, namespace: prod}}\n\
         spec:\n  \
           roles: [{{name: prefill, replicas: {}}}, {{name: decode, replicas: {batches}}}, {{name: router, replicas: 1}}]\n  \
           coordination: [{{name: pd, strategy: {{segmentPlacement: {{segmentSize: {{prefill: 2, decode: 1}}}}}}}}]\n",
        2 * batches
    )
}

/// Returns code and output of `plan` in this format.
fn plan(group: &str, format: &str) -> (i32, String) {
    let ran = ran(folder(&[("group.yaml", group)]), &format!("plan group.yaml -o {format}"));
    (ran.code.unwrap(), ran.out)
}

/// Returns the text of all elements with this name.
fn texts(of: Node<'_, '_>, name: &str) -> Vec<String> {
    let found = of.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name)));
    found.map(|node| node.text().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_picture_says_in_words_and_shapes_what_is_released() {
    let (code, svg) = plan(&group("llm", 4), "svg");
    assert_eq!(code, 0);
    let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    assert_eq!(root.attribute("aria-labelledby"), Some("plan-title plan-desc"));
    let titles = texts(root, "title");
    assert_eq!(titles[0], "Releases of RoleBasedGroup prod/llm");
    assert_eq!(titles[1], "prefill, 8 replicas: 2, 4, 6, 8 released, release by release.");
    assert_eq!(
        texts(root, "desc"),
        ["RoleBasedGroup prod/llm: admitted, complete after 4 releases. \
          prefill, 8 replicas: 2, 4, 6, 8 released, release by release. \
          decode, 4 replicas: 1, 2, 3, 4 released, release by release. \
          Role \"router\" is in no batch: its pods get no gate."]
    );
    // Each release adds one shape to a role, above the earlier ones; the first has none below it.
    let shapes = |class: &str| {
        let all = root.descendants().filter(|node| node.attribute("class") == Some(class));
        all.map(|node| node.attribute("d").unwrap().matches('M').count()).collect::<Vec<_>>()
    };
    assert_eq!((shapes("before"), shapes("new")), (vec![3, 3], vec![4, 4]));
    let shown = texts(root, "text");
    for text in ["prefill", "8 replicas", "release", "1", "4"] {
        assert!(shown.iter().any(|shown| shown == text), "{text:?} is not in {shown:?}");
    }
    // The picture is one file, for light and dark backgrounds.
    assert!(svg.contains("@media(prefers-color-scheme:dark)"));
    for outside in ["href", "url(", "@import", "<script", "<image"] {
        assert!(!svg.contains(outside), "{outside}");
    }
    assert_eq!(svg.matches("http").count(), 1, "the namespace alone");
}

#[test]
fn a_picture_of_thousands_of_releases_is_small_and_says_what_a_column_is() {
    let (code, svg) = plan(&group("llm", 3_000), "svg");
    assert_eq!(code, 0);
    assert!(svg.len() < 40_000, "{} bytes", svg.len());
    let document = Document::parse(&svg).unwrap();
    let shown = texts(document.root_element(), "text");
    assert!(shown.iter().any(|text| text == "each column is 15 releases of 3000 in all"), "{shown:?}");
    let title = &texts(document.root_element(), "title")[1];
    assert_eq!(title, "prefill, 6000 replicas: 30 released after 15 releases, 6000 after 3000 releases.");
}

/// Names from a file cannot break the picture.
#[test]
fn names_that_are_markup_are_text() {
    let name = "</text><script>alert(1)</script>&\u{1}\"'";
    let (_, svg) = plan(&group("llm", 1).replace("\"llm\"", &serde_json::to_string(name).unwrap()), "svg");
    let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let title = &texts(document.root_element(), "title")[0];
    assert_eq!(title, "Releases of RoleBasedGroup prod/</text><script>alert(1)</script>&\u{fffd}\"'");
    assert!(texts(document.root_element(), "script").is_empty());
}

#[test]
fn what_cannot_be_read_has_no_picture() {
    assert_eq!(plan("roles: [", "svg"), (2, String::new()));
}

#[test]
fn what_is_refused_or_stands_still_is_drawn_as_far_as_it_goes() {
    let refused = group("refused", 2).replace("decode: 1", "decode: 0");
    let both = format!("{refused}---\n{}", group("llm", 2));
    let (code, svg) = plan(&both, "svg");
    assert_eq!(code, 1);
    let document = Document::parse(&svg).unwrap();
    let shown = texts(document.root_element(), "text");
    assert!(shown.iter().any(|text| text == "refused, 1 error"), "{shown:?}");
    assert!(shown.iter().any(|text| text.contains("must be greater than or equal to 1")), "{shown:?}");
    let (_, chart) = plan(&both, "chart");
    assert!(chart.starts_with("RoleBasedGroup prod/refused: refused, 1 error\n  error: spec."), "{chart}");
}

#[test]
fn a_picture_says_where_batches_go_when_there_are_nodes() {
    let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"example.com/rack": "rack-7"}},
        "status": {"allocatable": {"pods": "9", "cpu": "9"}, "conditions": [{"type": "Ready", "status": "True"}]}}"#;
    let folder = folder(&[("group.yaml", include_str!("../../examples/racks.yaml")), ("node.json", node)]);
    let Ran { code, out: svg, .. } = ran(folder, "plan group.yaml --with node.json -o svg");
    assert_eq!(code, Some(0));
    let shown = texts(Document::parse(&svg).unwrap().root_element(), "text");
    let place = "segment 1 (4 prefill and 2 decode): rack-7 (n × 6)";
    assert!(shown.iter().any(|text| text == place), "{shown:?}");
}

#[test]
fn a_chart_shows_a_column_for_each_release() {
    let (code, chart) = plan(&group("llm", 4), "chart");
    assert_eq!(code, 0);
    let mut expected = "RoleBasedGroup prod/llm: admitted, complete after 4 releases\n".to_owned();
    for (role, replicas) in [("prefill", 8), ("decode", 4)] {
        _ = writeln!(expected, "  {role:<7} {replicas} |                  #####");
        _ = writeln!(expected, "            |            ##### #####");
        _ = writeln!(expected, "            |      ##### ##### #####");
        _ = writeln!(expected, "          0 |##### ##### ##### #####");
    }
    _ = writeln!(expected, "  release    1     2     3     4");
    _ = writeln!(expected, "  role \"router\" is in no batch: its pods get no gate");
    assert_eq!(chart, expected);
}

#[test]
fn a_chart_or_picture_is_of_a_whole_run() {
    let folder = folder(&[("group.yaml", &group("llm", 4)), ("state.yaml", "roles: {}")]);
    for format in ["chart", "svg"] {
        let ran = ran(&folder, &format!("plan group.yaml --state state.yaml -o {format}"));
        let why = "a chart or a picture shows a whole run: not with --state";
        assert!(ran.code == Some(2) && ran.err.contains(why), "{ran:?}");
    }
}

#[test]
fn wide_adds_the_shares_of_the_roles() {
    let (_, wide) = plan(&group("llm", 4), "wide");
    assert!(wide.contains("  RELEASE  PREFILL  DECODE  REPLICAS  PREFILL SHARE  DECODE SHARE\n"), "{wide}");
    assert!(wide.contains("  3        4-5      2       9/12      75 %           75 %\n"), "{wide}");
}

#[test]
fn yaml_has_the_data_of_json() {
    let nodes =
        r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}}"#;
    let folder = folder(&[("group.yaml", &group("llm", 2)), ("node.json", nodes)]);
    for command in ["plan", "fit"] {
        let print = |format: &str| ran(&folder, &format!("{command} group.yaml --with node.json -o {format}")).out;
        let json: Value = serde_json::from_str(&print("json")).unwrap();
        let yaml: Value = serde_saphyr::from_str(&print("yaml")).unwrap();
        assert!(json["groups"][0]["name"] == "llm" && yaml == json, "{command}: {yaml}\n{json}");
    }
}
