/// The Job that a pod belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOf {
    pub uid: Box<str>,
    /// Whether several Jobs create the pods of the role, one for each replica.
    pub is_one_of_many: bool,
    /// Whether the pod has succeeded.
    pub is_done: bool,
}
