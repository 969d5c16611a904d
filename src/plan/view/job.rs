//! The Job behind a pod.

/// The Job that a pod is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOf {
    /// Unique id of the Job.
    pub uid: Box<str>,
    /// The Job is a replica by itself, or one of several that make pods of the role.
    pub is_one_of_many: bool,
    /// The pod has done its work.
    pub is_done: bool,
}
