//! PodGroups of batches (podGroupPolicy): the pods that a gang scheduler starts together, and their scheduler.

use serde_json::Value;

use super::fault::{Cause, Reader, supported};
use super::words::words;
use super::{FieldPath, names};
use crate::api::pod_group::{KUBE_POD_GROUP, POD_GROUP, VOLCANO_POD_GROUP};
use crate::api::{Meta, ObjectKind};

/// PodGroups of the batches of one coordination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gangs {
    pub policy: PodGroupPolicy,
    /// The pods of one PodGroup; an unknown word counts as the default.
    pub level: GangLevel,
    /// Path of the policy.
    pub at: FieldPath,
}

/// Gang scheduler of a batch's PodGroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodGroupPolicy {
    /// `scheduling.x-k8s.io PodGroup` of the scheduler plugins.
    KubeScheduling {
        /// Seconds until the gang gives up.
        schedule_timeout_seconds: Option<i64>,
    },
    VolcanoScheduling {
        /// Name of a Volcano queue.
        queue: Option<String>,
        priority_class_name: Option<String>,
    },
    Kai {
        queue: Option<String>,
        /// KAI reads the priority class of the PodGroup, not those of its pods.
        priority_class_name: Option<String>,
    },
    /// Any other policy, or several at once.
    Unknown,
}

words! {
/// The pods that share a PodGroup.
pub enum GangLevel {
    /// All pods of a batch.
    Batch,
    /// The pods of one role of a batch.
    Role,
    /// The pods of one replica, if it has several (KEP-32: each RoleInstance has its own PodGroup).
    Replica,
}
}

/// The pods of one PodGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members<'a> {
    Batch,
    Role(&'a str),
    Replica { role: &'a str, ordinal: u32 },
}

/// The label or annotation by which a pod names its PodGroup to a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberKey {
    Label(&'static str),
    Annotation(&'static str),
}

/// Fields of `podGroupPolicy` that name a scheduler, exactly one of which is set.
pub const POD_GROUP_POLICIES: &[&str] = &["kubeScheduling", "volcanoScheduling", "kai"];

/// The keys of all schedulers.
pub const MEMBER_KEYS: &[MemberKey] = &[
    MemberKey::Label(names::KUBE_POD_GROUP),
    MemberKey::Annotation(names::VOLCANO_POD_GROUP),
    MemberKey::Annotation(names::KAI_POD_GROUP),
];

/// Field of the strategies; directly under `rollingDeploy` it is misplaced.
pub(super) const POD_GROUP_POLICY: &str = "podGroupPolicy";
/// Field of `podGroupPolicy` beside the scheduler.
const LEVEL: &str = "level";

/// The form of a value: whether a value has it, and the requirement.
type Form = (fn(&Value) -> bool, &'static str);

const OBJECT: Form = (Value::is_object, "must be an object");
const TEXT: Form = (Value::is_string, "must be a string");
const SECONDS: Form = (Value::is_u64, "must be a whole number of seconds");

/// Fields of each scheduler, with the form of their values.
const FORMS: &[(&str, &[(&str, Form)])] = &[
    ("kubeScheduling", &[("scheduleTimeoutSeconds", SECONDS)]),
    ("volcanoScheduling", &[("queue", TEXT), ("priorityClassName", TEXT)]),
    ("kai", &[("queue", TEXT), ("priorityClassName", TEXT)]),
];

/// Notes the values of a wrong form in a policy.
fn note_forms(policy: &Value, fields: &mut Reader<'_>) {
    let policy_at = fields.at.clone();
    let mut judge = |value: Option<&Value>, at: FieldPath, (has_form, detail): Form| {
        if let Some(wrong) = value.filter(|value| !value.is_null() && !has_form(value)) {
            fields.wrong(at, Some(wrong.to_string()), detail);
        }
    };
    for (scheduler, forms) in FORMS {
        let (value, at) = (policy.get(*scheduler), policy_at.child(*scheduler));
        judge(value, at.clone(), OBJECT);
        for (field, form) in *forms {
            judge(value.and_then(|value| value.get(*field)), at.child(*field), *form);
        }
    }
}

impl Gangs {
    /// Reads the scheduler of a policy and its level as written; a level without a scheduler is an unknown policy.
    pub(super) fn written(value: Option<&Value>) -> Option<(PodGroupPolicy, Option<&Value>)> {
        let level = value.and_then(|value| value.get(LEVEL)).filter(|level| !level.is_null());
        let policy = PodGroupPolicy::parse(value).or_else(|| level.map(|_| PodGroupPolicy::Unknown))?;
        Some((policy, level))
    }

    /// Reads the policy in a block.
    pub(super) fn parse(value: Option<&Value>, block: &mut Reader<'_>) -> Option<Self> {
        let (policy, written) = Self::written(value)?;
        let mut fields = block.within("pod-group-policy", POD_GROUP_POLICY);
        if policy == PodGroupPolicy::Unknown {
            let detail = format!("must set exactly one of {}", POD_GROUP_POLICIES.join(", "));
            fields.note(fields.at.clone(), Cause::Invalid, None, detail);
        }
        let word = written.map_or(Some(""), Value::as_str);
        let level = match word {
            Some("") => Some(GangLevel::Batch),
            word => word.and_then(GangLevel::of_word),
        };
        if level.is_none() {
            let detail = supported(GangLevel::ALL.iter().map(|level| level.as_str()));
            fields.note(fields.at.child(LEVEL), Cause::NotSupported, written.map(Value::to_string), detail);
        }
        value.iter().for_each(|value| note_forms(value, &mut fields));
        Some(Self { policy, level: level.unwrap_or(GangLevel::Batch), at: fields.at })
    }
}

impl PodGroupPolicy {
    /// Reads the scheduler of a policy. Absent, `null`, the string `nil` (KEP-75's example) and an empty object are no policy.
    pub fn parse(value: Option<&Value>) -> Option<Self> {
        let value = value?;
        let fields = match value {
            Value::Null => return None,
            Value::String(word) if word == "nil" || word.is_empty() => return None,
            Value::Object(fields) => fields,
            _ => return Some(Self::Unknown),
        };
        let mut set = fields.iter().filter(|(field, value)| !value.is_null() && *field != LEVEL);
        let (field, value) = set.next()?;
        if set.next().is_some() {
            return Some(Self::Unknown);
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(match field.as_str() {
            "kubeScheduling" => Self::KubeScheduling {
                schedule_timeout_seconds: value.get("scheduleTimeoutSeconds").and_then(Value::as_i64),
            },
            "volcanoScheduling" => {
                Self::VolcanoScheduling { queue: text("queue"), priority_class_name: text("priorityClassName") }
            }
            "kai" => Self::Kai { queue: text("queue"), priority_class_name: text("priorityClassName") },
            _ => Self::Unknown,
        })
    }

    /// Returns the kind of the PodGroup; `None` for an unknown policy.
    pub fn kind(&self) -> Option<ObjectKind> {
        self.member_key().map(MemberKey::kind)
    }

    /// Returns the key by which pods name their PodGroup; `None` for an unknown policy.
    pub const fn member_key(&self) -> Option<MemberKey> {
        match self {
            Self::KubeScheduling { .. } => Some(MemberKey::Label(names::KUBE_POD_GROUP)),
            Self::VolcanoScheduling { .. } => Some(MemberKey::Annotation(names::VOLCANO_POD_GROUP)),
            Self::Kai { .. } => Some(MemberKey::Annotation(names::KAI_POD_GROUP)),
            Self::Unknown => None,
        }
    }
}

impl GangLevel {
    /// Returns the pods that share a PodGroup with a pod of this replica; `None` for a replica of one pod that needs none.
    pub fn members(self, role: &str, ordinal: u32, replica_size: u32) -> Option<Members<'_>> {
        match self {
            Self::Batch => Some(Members::Batch),
            Self::Role => Some(Members::Role(role)),
            Self::Replica => (replica_size > 1).then_some(Members::Replica { role, ordinal }),
        }
    }
}

impl MemberKey {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Label(key) | Self::Annotation(key) => key,
        }
    }

    /// Returns the kind of the PodGroups that are named so.
    pub fn kind(self) -> ObjectKind {
        match self.as_str() {
            names::KUBE_POD_GROUP => KUBE_POD_GROUP,
            names::VOLCANO_POD_GROUP => VOLCANO_POD_GROUP,
            _ => POD_GROUP,
        }
    }

    /// Returns the PodGroup that a pod with this metadata names.
    pub fn read(self, meta: &Meta) -> Option<&str> {
        let named = match self {
            Self::Label(key) => meta.label(key),
            Self::Annotation(key) => meta.annotation(key),
        };
        named.filter(|name| !name.is_empty())
    }

    /// Returns the annotation that a pod has beside it: the podgrouper of KAI would replace the PodGroup by one for each workload.
    pub fn beside(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Annotation(names::KAI_POD_GROUP)).then_some((names::KAI_SKIP_PODGROUPER, "true"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: &Value) -> Option<Gangs> {
        Gangs::parse(Some(value), &mut Reader::of_group(&mut Vec::new()))
    }

    #[test]
    fn nil_is_no_policy() {
        for none in [json!(null), json!("nil"), json!({}), json!({"kubeScheduling": null}), json!({"level": null})] {
            assert_eq!(parse(&none), None, "{none}");
        }
        let timed = parse(&json!({"kubeScheduling": {"scheduleTimeoutSeconds": 60}})).map(|gangs| gangs.policy);
        assert_eq!(timed, Some(PodGroupPolicy::KubeScheduling { schedule_timeout_seconds: Some(60) }));
    }

    #[test]
    fn each_scheduler_has_a_kind_and_a_key() {
        for policy in [json!({"kubeScheduling": {}}), json!({"volcanoScheduling": {}}), json!({"kai": {}})] {
            let policy = parse(&policy).unwrap().policy;
            assert_eq!(policy.member_key().map(MemberKey::kind), policy.kind());
            assert!(MEMBER_KEYS.iter().any(|key| Some(*key) == policy.member_key()));
        }
    }
}
