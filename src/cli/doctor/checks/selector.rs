//! Matches webhook selectors and rules.

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;

pub use crate::cluster::read::installations::selects;

/// Reports whether the rules cover an operation on a resource.
pub fn matches(rules: Option<&[RuleWithOperations]>, group: &str, resource: &str, operation: &str) -> bool {
    let any =
        |list: &Option<Vec<String>>, wanted: &[&str]| list.iter().flatten().any(|item| wanted.contains(&item.as_str()));
    rules.into_iter().flatten().any(|rule| {
        any(&rule.operations, &["*", operation])
            && any(&rule.api_groups, &["*", group])
            && any(&rule.resources, &["*", "*/*", resource])
    })
}
