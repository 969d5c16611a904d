//! Finds missing rights of rolegate's account by asking the API server.

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;

use super::facts::{AskedRight, OptIn, Read, Rights, Target};
use super::reads::{AT_A_TIME, Reader, Wanted};
use crate::api::selector::LabelSelector;
use crate::cli::allow::Allow;
use crate::cli::ready_kinds;
use crate::cli::rights::{OF_ALLOWED, OF_CERTIFICATES, OF_SELECTION, RIGHTS, Right};
use crate::model::Serving;

impl Reader<'_> {
    /// Returns the user whose rights to check; `None` for the caller.
    async fn user(&self) -> Read<Option<String>> {
        if self.user.is_some() {
            return Ok(self.user.clone());
        }
        let Target { namespace, name } = &self.target;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.connection.client.clone(), namespace);
        let account = accounts.get_opt(name).await.map_err(|error| self.why(&error))?;
        Ok(account.map(|_| format!("system:serviceaccount:{namespace}:{name}")))
    }

    /// Returns the missing rights of those that serving needs.
    pub(super) async fn rights(&self, told: Option<&Serving>) -> Read<Rights> {
        // With certificates from elsewhere, the rights to keep them are not needed.
        let keeps = self.certificates().await?.is_some_and(|served| served.self_managed);
        let selects = told.is_some_and(|told| told.selector != LabelSelector::default());
        let sometimes = [(keeps, OF_CERTIFICATES), (selects, OF_SELECTION)];
        let taken = sometimes.into_iter().filter(|(applies, _)| *applies).flat_map(|(_, rights)| rights);
        let ready = self.ready_rights().await.unwrap_or_default();
        self.missing_of(RIGHTS.iter().chain(taken).chain(&ready)).await
    }

    /// Returns the rights for the kinds in `--ready-kinds` of our Deployment.
    async fn ready_rights(&self) -> Read<Vec<Right>> {
        let pods = self.deployment().await?.and_then(|found| found.spec?.template.spec);
        let containers = pods.into_iter().flat_map(|pods| pods.containers);
        let kinds = containers.flat_map(|container| ready_kinds::given(container.args.iter().flatten()));
        Ok(kinds.map(ready_kinds::right).collect())
    }

    /// Returns which of these rights are missing.
    async fn missing_of<'a>(&self, rights: impl Iterator<Item = &'a Right>) -> Read<Rights> {
        let user = self.user().await?;
        let mut all = Vec::new();
        for right in rights {
            let (namespace, object) = right.scope.place(&self.target.namespace, &self.target.name);
            for group in right.groups {
                for resource in right.resources {
                    for verb in right.verbs {
                        let asked = AskedRight {
                            group: (*group).to_owned(),
                            resource: (*resource).to_owned(),
                            verb: (*verb).to_owned(),
                            namespace: namespace.clone(),
                            why: right.why,
                        };
                        all.push((asked, object.clone()));
                    }
                }
            }
        }
        let asked = all.len();
        let ask = async |(asked, object): (AskedRight, Option<String>)| {
            let may = self.may(user.as_deref(), &asked, object).await.map_err(|error| self.why(&error))?;
            Ok::<_, String>((!may).then_some(asked))
        };
        let missing: Vec<_> = stream::iter(all).map(ask).buffer_unordered(AT_A_TIME).try_collect().await?;
        let mut missing: Vec<_> = missing.into_iter().flatten().collect();
        missing.sort();
        Ok(Rights { user, missing, asked })
    }

    /// Returns the `--allow` options that groups ask for or that our Deployment has switched on.
    pub(super) async fn opt_ins(&self, wanted: &Wanted) -> Read<Vec<OptIn>> {
        let on = self.allowed().await?;
        let mut all = Vec::new();
        for (what, rights) in OF_ALLOWED {
            let groups = wanted.get(what.word()).cloned().unwrap_or_default();
            let is_on = on.as_ref().map(|on| on.contains(what));
            if !groups.is_empty() || is_on == Some(true) {
                all.push(OptIn { what: *what, groups, is_on, rights: self.missing_of(rights.iter()).await? });
            }
        }
        Ok(all)
    }

    /// Returns why the pods of our Deployment are not created.
    pub(super) async fn not_made(&self) -> Read<Option<String>> {
        let conditions = self.deployment().await?.and_then(|found| found.status?.conditions);
        let failure =
            conditions.into_iter().flatten().find(|one| one.type_ == "ReplicaFailure" && one.status == "True");
        Ok(failure.map(|one| [one.reason, one.message].map(Option::unwrap_or_default).join(": ")))
    }

    async fn deployment(&self) -> Read<Option<Deployment>> {
        let deployments: Api<Deployment> = Api::namespaced(self.connection.client.clone(), &self.target.namespace);
        deployments.get_opt(&self.target.name).await.map_err(|error| self.why(&error))
    }

    /// Returns the `--allow` options in the arguments of our Deployment; `None` without a Deployment.
    async fn allowed(&self) -> Read<Option<Vec<Allow>>> {
        let pods = self.deployment().await?.and_then(|found| found.spec?.template.spec);
        Ok(pods
            .map(|pods| pods.containers.iter().flat_map(|container| allows(container.args.iter().flatten())).collect()))
    }

    async fn may(&self, user: Option<&str>, asked: &AskedRight, object: Option<String>) -> Result<bool, kube::Error> {
        let (resource, subresource) =
            asked.resource.split_once('/').map_or((asked.resource.as_str(), None), |(all, sub)| (all, Some(sub)));
        let attributes = ResourceAttributes {
            group: Some(asked.group.clone()),
            resource: Some(resource.to_owned()),
            subresource: subresource.map(str::to_owned),
            verb: Some(asked.verb.clone()),
            namespace: asked.namespace.clone(),
            name: object,
            ..ResourceAttributes::default()
        };
        let client = self.connection.client.clone();
        let params = PostParams::default();
        let status = if let Some(user) = user {
            let spec = SubjectAccessReviewSpec {
                user: Some(user.to_owned()),
                groups: Some(groups_of(user)),
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            };
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            Api::<SubjectAccessReview>::all(client).create(&params, &review).await?.status
        } else {
            let spec = SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            };
            let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
            Api::<SelfSubjectAccessReview>::all(client).create(&params, &review).await?.status
        };
        Ok(status.is_some_and(|status| status.allowed))
    }
}

/// Parses `--allow` from arguments of `serve`: `--allow=scale,recovery`, or as two arguments.
fn allows<'a>(arguments: impl Iterator<Item = &'a String>) -> Vec<Allow> {
    let mut all = Vec::new();
    let mut is_next = false;
    for argument in arguments {
        let words = if is_next { Some(argument.as_str()) } else { argument.strip_prefix("--allow=") };
        is_next = argument == "--allow";
        let words = words.into_iter().flat_map(|words| words.split(','));
        all.extend(
            words.filter_map(|word| OF_ALLOWED.iter().find(|(allow, _)| allow.word() == word)).map(|(allow, _)| *allow),
        );
    }
    all
}

/// Returns the groups that the API server puts an authenticated user into.
fn groups_of(user: &str) -> Vec<String> {
    let mut groups = vec!["system:authenticated".to_owned()];
    if let Some((namespace, _)) = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serve_is_told_to_allow_is_read_in_each_of_its_ways() {
        let allowed = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
            allows(arguments.iter())
        };
        assert_eq!(allowed(&["serve", "--listen=:8443"]), []);
        assert_eq!(allowed(&["serve", "--allow=scale,recovery"]), [Allow::Scale, Allow::Recovery]);
        assert_eq!(allowed(&["serve", "--allow", "recovery", "scale"]), [Allow::Recovery]);
    }
}
