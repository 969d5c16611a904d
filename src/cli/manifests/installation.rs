//! What rights and policies depend on: an installation, or whatever the Helm chart is installed as.

use crate::cli::allow::Allow;

/// A choice that adds rights, or changes what a policy permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `--certificates self-managed`.
    SelfManaged,
    /// `--namespace-selector`.
    Selection,
    /// `--recreate-mis-stamped`.
    Recreation,
    Allow(Allow),
}

impl Choice {
    pub const ALL: [Self; 6] = [
        Self::SelfManaged,
        Self::Selection,
        Self::Recreation,
        Self::Allow(Allow::Scale),
        Self::Allow(Allow::Recovery),
        Self::Allow(Allow::Provision),
    ];

    /// Returns its name in those of files and of roles.
    pub const fn word(self) -> &'static str {
        match self {
            Self::SelfManaged => "self-managed",
            Self::Selection => "selection",
            Self::Recreation => "recreation",
            Self::Allow(allow) => allow.word(),
        }
    }

    /// Returns the condition in a template.
    fn in_chart(self) -> String {
        match self {
            Self::SelfManaged => "eq .Values.certificates `self-managed`".to_owned(),
            Self::Selection => ".Values.namespaceSelector".to_owned(),
            Self::Recreation => ".Values.recreateMisStamped".to_owned(),
            Self::Allow(allow) => format!("has `{}` .Values.allow", allow.word()),
        }
    }
}

/// An installation.
#[derive(Clone, Debug)]
pub struct Installation {
    /// Name of every object.
    pub name: String,
    /// Namespace of rolegate.
    pub namespace: String,
    /// Kinds whose objects groups may wait for, as `serve --ready-kinds` takes them.
    pub ready_kinds: String,
    /// What is chosen; `None` in the chart, which does not know.
    pub chosen: Option<Vec<Choice>>,
}

impl Installation {
    /// Returns that of the chart's files: what it does not know are actions, which its templates carry out.
    pub fn of_chart() -> Self {
        Self {
            name: "{{ include `rolegate.fullname` . }}".to_owned(),
            namespace: "{{ .Release.Namespace }}".to_owned(),
            ready_kinds: "{{ join `,` .Values.readyKinds }}".to_owned(),
            chosen: None,
        }
    }

    /// Reports whether something with this condition is there.
    pub fn has(&self, when: Option<Choice>) -> bool {
        when.zip(self.chosen.as_ref()).is_none_or(|(when, chosen)| chosen.contains(&when))
    }

    /// Returns one of two texts.
    pub fn chosen(&self, choice: Choice, with: &str, without: &str) -> String {
        match &self.chosen {
            Some(chosen) => if chosen.contains(&choice) { with } else { without }.to_owned(),
            None => format!("{{{{ if {} }}}}{with}{{{{ else }}}}{without}{{{{ end }}}}", choice.in_chart()),
        }
    }
}
