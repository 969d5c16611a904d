//! The parts of the Helm chart besides our objects: the schema of its values, the helpers, the definitions.

use serde_json::{Map, Value, json};

use super::values::chart_values;
use super::workload::given;
use crate::api::crd;
use crate::cli::allow::Allow;

/// Values with an enumeration.
const WORDS: &[(&str, &[&str])] = &[
    ("certificates", &["self-managed", "cert-manager"]),
    ("whenUnsatisfiable", &["ScheduleAnyway", "DoNotSchedule"]),
    ("logFormat", &["json", "text"]),
    ("mode", &["enforce", "warn", "observe"]),
    ("dnsPolicy", &["", "ClusterFirst", "ClusterFirstWithHostNet", "Default"]),
    ("image.pullPolicy", &["Always", "IfNotPresent", "Never"]),
];

/// Lists of enumerated values.
const LISTS: &[(&str, &[&str])] = &[("allow", &[Allow::Scale.word(), Allow::Recovery.word(), Allow::Provision.word()])];

/// Fields of a pod's `securityContext`.
const POD_SECURITY: &[&str] = &[
    "appArmorProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "seLinuxChangePolicy",
    "seLinuxOptions",
    "seccompProfile",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
];

type Shape = fn() -> Value;

/// Schemas of values that Kubernetes defines or that have a restricted range.
const SHAPES: &[(&str, Shape)] = &[
    ("affinity", || closed(&["nodeAffinity", "podAffinity", "podAntiAffinity"], &json!({ "type": "object" }))),
    ("commonLabels", || texts(&[super::OWN_LABEL, "app.kubernetes.io/component"])),
    ("podLabels", || texts(&[super::OWN_LABEL])),
    ("podAnnotations", || texts(&["kubectl.kubernetes.io/default-container"])),
    ("serviceAccount.annotations", || texts(&[])),
    ("nodeSelector", || texts(&[])),
    ("extraArguments", || {
        let given = format!("^--({})(=|$)", given().join("|"));
        json!({ "type": "array", "items": { "type": "string", "minLength": 1, "not": { "pattern": given } } })
    }),
    ("podSecurityContext", || closed(POD_SECURITY, &json!({}))),
    ("listenAddress", || json!({ "type": "string", "pattern": "^([0-9.]+|[0-9a-fA-F:]*:[0-9a-fA-F:.]*)$" })),
    (
        "namespaces",
        || json!({ "type": "array", "items": { "type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" } }),
    ),
    ("extraEnv", || list(&["name"], json!({ "name": text(), "value": text(), "valueFrom": { "type": "object" } }))),
    ("extraVolumes", || list(&["name"], Value::Null)),
    ("extraVolumeMounts", || list(&["name", "mountPath"], Value::Null)),
    ("imagePullSecrets", || list(&["name"], json!({ "name": text() }))),
    ("tolerations", || {
        let words = ["key", "operator", "value", "effect"].map(|key| (key.to_owned(), text()));
        let mut fields: Map<_, _> = words.into_iter().collect();
        fields.insert("tolerationSeconds".to_owned(), json!({ "type": "integer" }));
        list(&[], json!(fields))
    }),
    ("topologySpreadConstraints", || list(&["maxSkew", "topologyKey", "whenUnsatisfiable"], Value::Null)),
    ("rules", || json!({ "type": "array", "items": { "type": "string", "pattern": "^[a-z0-9-]+=(deny|warn|off)$" } })),
    ("readyKinds", || {
        let kind = r"^[A-Z][A-Za-z0-9]*=[a-z0-9-]+\.[a-z0-9-]+(\.[a-z0-9.-]+)?$";
        let most = super::authors::MOST_READY_KINDS;
        json!({ "type": "array", "maxItems": most, "items": { "type": "string", "pattern": kind } })
    }),
    ("ignoreResources", || {
        let resource = r"^(hugepages-[A-Za-z0-9._-]+|[a-z0-9][a-z0-9.-]*/(\*|[A-Za-z0-9._-]+))$";
        json!({ "type": "array", "items": { "type": "string", "pattern": resource } })
    }),
    ("namespaceSelector", selector),
    ("resources", || closed(&["limits", "requests", "claims"], &json!({ "type": ["object", "array"] }))),
    ("webhookPort", port),
    ("adminPort", port),
    ("nameOverride", name),
    ("fullnameOverride", name),
    (
        "podDisruptionBudget.maxUnavailable",
        || json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": "^[0-9]+%$" }] }),
    ),
];

fn text() -> Value {
    json!({ "type": "string" })
}

fn port() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX })
}

/// Returns the schema of a LabelSelector.
fn selector() -> Value {
    let values = json!({ "type": "array", "items": text() });
    let expression =
        json!({ "key": text(), "operator": { "enum": ["In", "NotIn", "Exists", "DoesNotExist"] }, "values": values });
    json!({
        "type": "object",
        "properties": { "matchLabels": texts(&[]), "matchExpressions": list(&["key", "operator"], expression) },
        "additionalProperties": false,
    })
}

/// Returns the schema of a Service name, or an empty name.
fn name() -> Value {
    json!({ "type": "string", "pattern": "^([a-z]([-a-z0-9]*[a-z0-9])?)?$", "maxLength": 50 })
}

/// Returns the schema of a string map without these keys, which rolegate sets.
fn texts(ours: &[&str]) -> Value {
    json!({
        "type": "object",
        "additionalProperties": text(),
        "propertyNames": { "not": { "enum": ours.iter().chain(&["*"]).collect::<Vec<_>>() } },
    })
}

/// Returns the schema of an object with only these keys, all optional.
fn closed(keys: &[&str], of: &Value) -> Value {
    let properties: Map<_, _> = keys.iter().map(|key| ((*key).to_owned(), of.clone())).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Returns the schema of a list of objects with these required keys, and only the given fields if there are any.
fn list(required: &[&str], fields: Value) -> Value {
    let closed = !fields.is_null();
    let properties = if closed { fields } else { json!({}) };
    let item = json!({
        "type": "object", "required": required, "properties": properties, "additionalProperties": !closed,
    });
    json!({ "type": "array", "items": item })
}

/// Returns the schema of the chart's values: Helm refuses misspelt values.
pub fn schema() -> String {
    let mut schema = of_object("", &chart_values());
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    }
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        // Helm adds `global` to the values of every chart.
        properties.insert("global".to_owned(), json!({}));
    }
    format!("{schema:#}\n")
}

fn of_object(path: &str, values: &Map<String, Value>) -> Value {
    let values = values.iter().filter(|(key, _)| !key.starts_with('#'));
    let properties: Map<_, _> = values
        .map(|(key, value)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            (key.clone(), property(&path, value))
        })
        .collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn property(path: &str, value: &Value) -> Value {
    if let Some((_, words)) = LISTS.iter().find(|(known, _)| *known == path) {
        return json!({ "type": "array", "items": { "enum": words } });
    }
    if let Some((_, words)) = WORDS.iter().find(|(known, _)| *known == path) {
        return json!({ "enum": words });
    }
    if let Some((_, shape)) = SHAPES.iter().find(|(known, _)| *known == path) {
        return shape();
    }
    match value {
        Value::Number(_) => json!({ "type": "integer", "minimum": 1 }),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Array(_) => json!({ "type": "array" }),
        Value::Object(values) => of_object(path, values),
        _ => text(),
    }
}

/// Templates of the release's names, and of the rules for the kinds that groups wait for. Suffixes such as `-certificates` must
/// fit into 63 characters.
pub const HELPERS: &str = r#"{{- /* Written by `make docs`, from the source of `rolegate manifests`. */ -}}
{{- define "rolegate.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $named := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $named .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- define "rolegate.readyRules" -}}
{{- range .Values.readyKinds }}
{{- $resource := splitn "." 3 (last (splitList "=" .)) }}
- apiGroups: [{{ default "" $resource._2 | quote }}]
  resources: [{{ $resource._0 | quote }}]
  verbs: ["list", "watch"]
{{- end }}
{{- end -}}
"#;

/// Template that refuses to install while a definition is being deleted: Helm would take it for installed.
const REFUSAL: &str = r#"{{- range $name := list "rolecoordinations.rolegate.dev" "clustertopologies.rolegate.dev" }}
{{- $old := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- if dig "metadata" "deletionTimestamp" "" $old }}
{{- fail (printf "the definition %s is still being deleted, and would be gone after the installation: wait until it is (`kubectl wait --for=delete crd/%s`); what it waits for are objects with finalizers" $name $name) }}
{{- end }}
{{- end }}
"#;

/// Returns the definitions as a template: Helm installs `crds/` once, and never upgrades it.
pub fn definitions() -> String {
    const METADATA: &str = "  {{- if .Values.crds.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
  {{- with .Values.commonLabels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
";
    let template = |(_, yaml): (String, String)| {
        // Braces in descriptions must not be template actions.
        let plain = yaml.replace("{{", "{{ \"{{\" }}");
        let (head, spec) = plain.split_once("spec:\n").unwrap_or((&plain, ""));
        format!("---\n{head}{METADATA}spec:\n{spec}")
    };
    let all: String = crd::files(false).into_iter().map(template).collect();
    format!("{{{{- if .Values.crds.enabled }}}}\n{REFUSAL}{all}{{{{- end }}}}\n")
}
