//! Generated files match their source: definitions, the page of rules, manifests and the Helm chart.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

#[test]
fn the_definitions_in_deploy_are_those_of_the_types() {
    for (folder, optional) in [("deploy/crds", false), ("deploy/optional", true)] {
        for (name, yaml) in rolegate::api::crd::files(optional) {
            is_current(&format!("{folder}/{name}"), &yaml);
        }
    }
}

/// What is printed and what unknown fields are judged by are these files. What `make docs` writes is known at the next build.
#[test]
fn the_program_knows_the_definitions_in_deploy() {
    use rolegate::api::crd;
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return;
    }
    for (files, known) in [(crd::files(false), crd::OWN), (crd::files(true), crd::OPTIONAL)] {
        let known = known.iter().map(|(kind, yaml)| (format!("{}.yaml", kind.crd_name()), (*yaml).to_owned()));
        let faults: Vec<_> = files.iter().zip(known).filter(|(file, known)| *file != known).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
}

#[test]
fn the_definitions_take_every_word_that_the_rules_take() {
    use rolegate::model::batching::{BATCH_MODES, SEGMENT_PROGRESSIONS};
    use rolegate::model::topology::{AFFINITY_STRATEGIES, CONSTRAINT_MODES, DEFAULT_CLUSTER_TOPOLOGY};
    fn words<T>(all: &[(&str, T)]) -> Vec<String> {
        std::iter::once("").chain(all.iter().map(|(word, _)| *word)).map(str::to_owned).collect()
    }
    let strategy = "/properties/strategy/properties";
    let deploy = format!("{strategy}/rollingDeploy/properties/deployTopologyConstraint/properties");
    let segments = format!("{strategy}/segmentPlacement/properties");
    let fields = [
        (format!("{segments}/progression"), words(SEGMENT_PROGRESSIONS)),
        (format!("{segments}/topologyAffinity/properties/strategy"), words(AFFINITY_STRATEGIES)),
        (format!("{strategy}/affinityScheduling/properties/batchMode"), words(BATCH_MODES)),
        (format!("{deploy}/constraintMode"), words(CONSTRAINT_MODES)),
    ];
    engines_are_those_of_the_rules();
    let own = rolegate::api::crd::files(false).into_iter().chain(rolegate::api::crd::files(true));
    for (name, yaml) in own.filter(|(name, _)| !name.starts_with("clustertopologies")) {
        let definition: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
        let entry = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/coordination/items";
        let entry = definition.pointer(entry).unwrap();
        for (field, words) in &fields {
            let field = entry.pointer(field).unwrap_or_else(|| panic!("{name}: {field}"));
            // The first word is empty, for none; the second is the default.
            assert_eq!((&field["enum"], &field["default"]), (&serde_json::json!(words), &serde_json::json!(words[1])));
        }
        let topology = entry.pointer(&format!("{deploy}/clusterTopologyName/default"));
        assert_eq!(topology, Some(&serde_json::json!(DEFAULT_CLUSTER_TOPOLOGY)), "{name}");
    }
}

/// The engine of a role takes the kinds and the settings of the rules, in every definition that has roles.
fn engines_are_those_of_the_rules() {
    use rolegate::model::engine::{KINDS, SETTINGS, Values};
    let own = rolegate::api::crd::files(false).into_iter().chain(rolegate::api::crd::files(true));
    for (name, yaml) in own.filter(|(name, _)| !name.starts_with("clustertopologies")) {
        let definition: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
        let engine = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/roles/items/properties/engine/properties";
        let engine = definition.pointer(engine).unwrap_or_else(|| panic!("{name} has no engine"));
        let kinds: Vec<_> = KINDS.iter().map(|(word, ..)| *word).collect();
        assert_eq!(engine["kinds"]["items"]["enum"], serde_json::json!(kinds), "{name}");
        assert_eq!(engine.as_object().unwrap().len(), SETTINGS.len() + 1, "{name}");
        for setting in SETTINGS {
            let field = &engine[setting.name];
            match setting.values {
                Values::Words(words) => assert_eq!(field["enum"], serde_json::json!(words), "{name}: {}", setting.name),
                Values::Numbers { least, most } => {
                    let bounds = (field["minimum"].as_i64(), field["maximum"].as_i64());
                    assert_eq!(bounds, (Some(least), Some(most)), "{name}: {}", setting.name);
                }
            }
        }
    }
}

/// Returns the reference page of the rules, from their tables.
fn rules_page() -> String {
    use rolegate::rules::settings::why_fixed;
    use rolegate::rules::{Level, catalogue};
    let mut page =
        "# Rules\n\nMessages and metrics contain the id of a rule. **E** refuses an object, **W** warns. `--rule ID=deny|warn|off` of `serve` \
         and\n`check` changes this, except for rules with a star. `tests/cases/<object>/<rule>.yaml` specifies each rule.\n"
            .to_owned();
    let mut object = "";
    for rule in catalogue() {
        if rule.object != object {
            object = rule.object;
            _ = write!(page, "\n## {object}\n\n");
        }
        let level = match rule.level {
            Level::Error => "E",
            Level::Warning => "W",
            Level::Either => "E/W",
        };
        let mark = if why_fixed(rule.id).is_some() { "\\*" } else { "" };
        _ = writeln!(page, "- `{}`{mark} {level}: {}", rule.id, rule.summary);
    }
    page
}

/// Returns the page of what engines read, from the table of facts.
fn engines_page() -> String {
    use rolegate::model::engine::{Computed, KINDS, SETTINGS};
    let mut page = "# What engines read\n\nThe variables, labels and annotations that pods get for each engine in the annotation \
                    `rolegate.dev/engine`\n([guide](guides/engines.md)). If two engines of a pod share a name, the value of the first one counts. \
                    Where *read by* is a flag,\nthe engine does not read the variable itself: write `--flag=$(NAME)` in the command line. *Version* \
                    is that of the engine in\nwhich the name was read; `src/core/model/engine/facts.rs` has the file.\n"
        .to_owned();
    for (word, kind, port) in KINDS {
        _ = write!(page, "\n## {word}\n\n");
        if let Some(port) = port {
            _ = writeln!(page, "The processes meet at port {port} by default (setting `port`).\n");
        }
        page.push_str("| name | kind | value | read by | version |\n|---|---|---|---|---|\n");
        for fact in kind.facts() {
            let value = match fact.computed {
                Computed::Fixed(value) => format!("`{value}`"),
                Computed::Field(path) => format!("field `{path}` of the pod"),
                other => other.words().to_owned(),
            };
            let (name, target) = (fact.name, fact.target.as_str());
            _ = writeln!(page, "| `{name}` | {target} | {value} | {} | {} |", fact.read_by, fact.read.version);
        }
    }
    _ = write!(page, "\n## Settings\n\n| setting | values |\n|---|---|\n");
    for setting in SETTINGS {
        _ = writeln!(page, "| `{}` | {} |", setting.name, setting.values);
    }
    page
}

#[test]
fn the_page_of_engines_is_that_of_their_facts() {
    is_current("docs/engines.md", &engines_page());
}

/// Compares a stored file with its source; `make docs` updates it.
pub fn is_current(path: &str, page: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, page).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    assert!(stored == page, "{path} is not what its source says: run `make docs`");
}

#[test]
fn the_page_of_rules_is_that_of_their_tables() {
    is_current("docs/rules.md", &rules_page());
}

#[test]
fn the_page_of_the_api_is_that_of_the_definitions() {
    is_current("docs/api.md", &crate::api_page::page());
}

#[test]
fn what_is_installed_is_what_the_program_prints() {
    for (path, text) in rolegate::cli::manifests::files() {
        is_current(&path, &text);
    }
}

/// Returns the alerts as a PrometheusRule: the same lines, indented.
fn prometheus_rule(alerts: &str) -> String {
    let head = "# Written by `make docs`, from alerts.yaml.\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n\
                metadata:\n  name: rolegate\n  namespace: rolegate-system\n  labels:\n    \
                app.kubernetes.io/name: rolegate\nspec:\n";
    let rules = alerts.lines().skip_while(|line| line.starts_with('#'));
    let further_in = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") };
    rules.map(further_in).fold(head.to_owned(), |text, line| text + &line)
}

#[test]
fn the_alerts_of_prometheus_operator_are_those_of_the_plain_file() {
    let alerts = include_str!("../../deploy/monitoring/alerts.yaml");
    is_current("deploy/monitoring/prometheusrule.yaml", &prometheus_rule(alerts));
}
