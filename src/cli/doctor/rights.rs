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
use super::reads::{AT_A_TIME, OfDeployment, Reader};
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
        let account = self.own::<ServiceAccount>(name).await?;
        Ok(account.map(|_| format!("system:serviceaccount:{namespace}:{name}")))
    }

    /// Returns the missing rights of those that serving needs.
    pub(super) async fn rights(&self, told: Option<&Serving>, deployment: &OfDeployment) -> Read<Rights> {
        // With certificates from elsewhere, the rights to keep them are not needed.
        let keeps = self.certificates().await?.is_some_and(|served| served.self_managed);
        let selects = told.is_some_and(|told| told.selector != LabelSelector::default());
        let sometimes = [(keeps, OF_CERTIFICATES), (selects, OF_SELECTION)];
        let taken = sometimes.into_iter().filter(|(applies, _)| *applies).flat_map(|(_, rights)| rights);
        let kinds = deployment.iter().flatten().flat_map(|found| given(found, ready_kinds::given));
        let ready: Vec<_> = kinds.map(ready_kinds::right).collect();
        self.missing_of(RIGHTS.iter().chain(taken).chain(&ready)).await
    }

    /// Returns which of these rights are missing.
    async fn missing_of<'a>(&self, rights: impl Iterator<Item = &'a Right>) -> Read<Rights> {
        let user = self.user().await?;
        let mut all = Vec::new();
        for Right { groups, resources, verbs, scope, why } in rights {
            let (namespace, object) = scope.place(&self.target.namespace, &self.target.name);
            for (group, resource) in groups.iter().flat_map(|group| resources.iter().map(move |one| (group, one))) {
                all.extend(verbs.iter().map(|verb| AskedRight {
                    group,
                    resource,
                    verb,
                    namespace: namespace.clone(),
                    why,
                    object: object.clone(),
                }));
            }
        }
        let asked = all.len();
        let ask = async |asked: AskedRight| {
            let may = self.may(user.as_deref(), &asked).await.map_err(|error| self.why(&error))?;
            Ok::<_, String>((!may).then_some(asked))
        };
        let missing: Vec<_> = stream::iter(all).map(ask).buffer_unordered(AT_A_TIME).try_collect().await?;
        let mut missing: Vec<_> = missing.into_iter().flatten().collect();
        missing.sort();
        Ok(Rights { user, missing, asked })
    }

    /// Returns the `--allow` options that groups ask for or that our Deployment has switched on.
    pub(super) async fn opt_ins(&self, wanted: &[(Allow, String)], deployment: &OfDeployment) -> Read<Vec<OptIn>> {
        let on = deployment.as_ref().map_err(Clone::clone)?.as_ref().map(|found| given(found, allows));
        let mut all = Vec::new();
        for (what, rights) in OF_ALLOWED {
            let groups: Vec<_> =
                wanted.iter().filter(|(asked, _)| asked == what).map(|(_, group)| group.clone()).collect();
            let is_on = on.as_ref().map(|on| on.contains(what));
            if !groups.is_empty() || is_on == Some(true) {
                all.push(OptIn { what: *what, groups, is_on, rights: self.missing_of(rights.iter()).await? });
            }
        }
        Ok(all)
    }

    async fn may(&self, user: Option<&str>, asked: &AskedRight) -> Result<bool, kube::Error> {
        let (resource, subresource) = asked.resource.split_once('/').unwrap_or((asked.resource, ""));
        let resource_attributes = Some(ResourceAttributes {
            group: Some(asked.group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource: Some(subresource.to_owned()),
            verb: Some(asked.verb.to_owned()),
            namespace: asked.namespace.clone(),
            name: asked.object.clone(),
            ..ResourceAttributes::default()
        });
        let (client, params) = (self.connection.client.clone(), PostParams::default());
        let status = if let Some(user) = user {
            let (groups, user) = (Some(groups_of(user)), Some(user.to_owned()));
            let spec =
                SubjectAccessReviewSpec { user, groups, resource_attributes, ..SubjectAccessReviewSpec::default() };
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            Api::<SubjectAccessReview>::all(client).create(&params, &review).await?.status
        } else {
            let spec = SelfSubjectAccessReviewSpec { resource_attributes, ..SelfSubjectAccessReviewSpec::default() };
            let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
            Api::<SelfSubjectAccessReview>::all(client).create(&params, &review).await?.status
        };
        Ok(status.is_some_and(|status| status.allowed))
    }
}

/// Returns what the containers of a Deployment are given, as `read` finds it in their arguments.
fn given<T>(deployment: &Deployment, read: impl Fn(&[String]) -> Vec<T>) -> Vec<T> {
    let pods = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = pods.into_iter().flat_map(|pods| &pods.containers);
    containers.flat_map(|container| read(container.args.as_deref().unwrap_or_default())).collect()
}

/// Returns the `--allow` options in arguments of `serve`: `--allow=scale,recovery`, or as two arguments.
fn allows(arguments: &[String]) -> Vec<Allow> {
    let known = |word: &str| OF_ALLOWED.iter().map(|(allow, _)| *allow).find(|allow| allow.word() == word);
    ready_kinds::words("--allow", arguments).into_iter().filter_map(known).collect()
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
            allows(&arguments)
        };
        assert_eq!(allowed(&["serve", "--listen=:8443"]), []);
        assert_eq!(allowed(&["serve", "--allow=scale,recovery"]), [Allow::Scale, Allow::Recovery]);
        assert_eq!(allowed(&["serve", "--allow", "recovery", "scale"]), [Allow::Recovery]);
    }
}
