//! Paths of fields, written as in YAML: `spec.coordination[0].strategy.segmentPlacement.segmentSize[prefill]`.

use std::borrow::Cow;
use std::fmt;

/// Path of a field. Paths sort by structure: entry 10 comes after entry 2.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Step {
    Child(Cow<'static, str>),
    Index(usize),
    Key(String),
}

impl FieldPath {
    /// Returns the path of a top-level field.
    pub fn new(name: &'static str) -> Self {
        Self(vec![Step::Child(Cow::Borrowed(name))])
    }

    /// Returns the path of an annotation.
    pub fn annotation(key: &str) -> Self {
        Self::new("metadata").child("annotations").key(key)
    }

    /// Returns the path of a field of this object.
    #[must_use]
    pub fn child(&self, name: impl Into<Cow<'static, str>>) -> Self {
        self.with(Step::Child(name.into()))
    }

    /// Returns the path of an entry of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    /// Returns the path of an entry of this map.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.with(Step::Key(key.into()))
    }

    /// Returns the path of the enclosing object or list.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0.split_last().map(|(_, steps)| steps.to_vec()).unwrap_or_default())
    }

    /// Reports whether this is the path of the whole object.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports whether the last step is this field or key.
    pub fn ends_with(&self, name: &str) -> bool {
        self.steps().last().is_some_and(|(is_index, step)| !is_index && step == name)
    }

    /// Reports whether this is the path, or one of a part, of what is at the other path.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// Returns the steps as (is a list index, text), to walk a document.
    pub fn steps(&self) -> impl Iterator<Item = (bool, Cow<'_, str>)> {
        self.0.iter().map(|step| match step {
            Step::Child(name) => (false, Cow::Borrowed(name.as_ref())),
            Step::Key(key) => (false, Cow::Borrowed(key.as_str())),
            Step::Index(index) => (true, Cow::Owned(index.to_string())),
        })
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Child(name) if position == 0 => f.write_str(name)?,
                Step::Child(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_in_yaml_and_sorts_by_number() {
        let list = FieldPath::new("spec").child("coordination");
        let (two, ten) = (list.index(2).child("name"), list.index(10));
        assert_eq!(
            list.index(0).child("segmentSize").key("prefill").to_string(),
            "spec.coordination[0].segmentSize[prefill]"
        );
        assert!(two < ten);
    }
}
