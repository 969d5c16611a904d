//! Objects by name. Each name is checked before it becomes part of a request path: kube does not check, and a name with `/`
//! or `?` would change the request.

use std::marker::PhantomData;

use http::Request;
use k8s_openapi::api::autoscaling::v1::Scale;
use kube::api::{DeleteParams, GetParams, ListParams, ObjectList, Patch, PatchParams, PostParams};
use kube::core::request::{Error as RequestError, Request as Requests};
use kube::core::{DynamicResourceScope, PartialObjectMeta};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::ObjectKind;
use crate::cluster::failure::unless;
use crate::model::object_name::{label_fault, subdomain_fault};

/// The objects of a kind, in one namespace or in all, read as `T`.
pub struct Objects<T> {
    client: Client,
    kind: ObjectKind,
    namespace: Option<String>,
    read_as: PhantomData<fn() -> T>,
}

/// Returns the objects of a kind, in one namespace or in all; `namespace` is ignored for cluster-scoped kinds.
pub fn api<T>(client: &Client, kind: ObjectKind, namespace: Option<&str>) -> Objects<T> {
    let namespace = namespace.filter(|_| kind.namespaced).map(str::to_owned);
    Objects { client: client.clone(), kind, namespace, read_as: PhantomData }
}

/// Returns an error for a name with a fault.
fn refuse(what: &str, name: &str, fault: Option<&str>) -> Result<(), RequestError> {
    fault.map_or(Ok(()), |fault| Err(RequestError::Validation(format!("{what} {name:?}: {fault}"))))
}

fn check(namespace: Option<&str>, name: Option<&str>) -> Result<(), RequestError> {
    namespace.map_or(Ok(()), |namespace| refuse("namespace", namespace, label_fault(namespace)))?;
    name.map_or(Ok(()), |name| refuse("name", name, subdomain_fault(name)))
}

impl<T: Resource<DynamicType = ObjectKind, Scope = DynamicResourceScope>> Objects<T> {
    /// Returns the API of all objects, for a watch.
    pub fn all(self) -> kube::Result<Api<T>> {
        check(self.namespace.as_deref(), None).map_err(kube::Error::BuildRequest)?;
        Ok(match self.namespace {
            Some(namespace) => Api::namespaced_with(self.client, &namespace, &self.kind),
            None => Api::all_with(self.client, &self.kind),
        })
    }
}

impl<T: Clone + DeserializeOwned> Objects<T> {
    /// Sends a request about all objects or the one of this name. The word is its name in the spans of kube.
    async fn ask<R: DeserializeOwned>(
        &self,
        word: &'static str,
        name: Option<&str>,
        ask: impl FnOnce(Requests) -> Result<Request<Vec<u8>>, RequestError>,
    ) -> kube::Result<R> {
        let mut request = asked(self.kind, self.namespace.as_deref(), name, ask)?;
        request.extensions_mut().insert(word);
        self.client.request(request).await
    }

    pub async fn get(&self, name: &str) -> kube::Result<T> {
        self.ask("get", Some(name), |requests| requests.get(name, &GetParams::default())).await
    }

    /// Reads an object; `None` when it does not exist.
    pub async fn get_opt(&self, name: &str) -> kube::Result<Option<T>> {
        unless(&[404], self.get(name).await)
    }

    pub async fn get_metadata(&self, name: &str) -> kube::Result<PartialObjectMeta> {
        self.ask("get_metadata", Some(name), |requests| requests.get_metadata(name, &GetParams::default())).await
    }

    pub async fn list_metadata(&self, params: &ListParams) -> kube::Result<ObjectList<PartialObjectMeta>> {
        self.ask("list_metadata", None, |requests| requests.list_metadata(params)).await
    }

    pub async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<T>> {
        self.ask("list", None, |requests| requests.list(params)).await
    }

    /// Finds an object by name in a list; `None` when it does not exist. Needs the right to list, not to get.
    pub async fn find(&self, name: &str) -> kube::Result<Option<T>> {
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        Ok(self.list(&named).await?.items.into_iter().next())
    }

    /// Creates an object. The API server checks its name.
    pub async fn create(&self, params: &PostParams, object: &impl Serialize) -> kube::Result<T> {
        let object = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        self.ask("create", None, |requests| requests.create(params, object)).await
    }

    pub async fn patch(&self, name: &str, params: &PatchParams, patch: &Patch<Value>) -> kube::Result<T> {
        self.ask("patch", Some(name), |requests| requests.patch(name, params, patch)).await
    }

    pub async fn patch_status(&self, name: &str, params: &PatchParams, patch: &Patch<Value>) -> kube::Result<T> {
        let ask = |requests: Requests| requests.patch_subresource("status", name, params, patch);
        self.ask("patch_status", Some(name), ask).await
    }

    pub async fn patch_scale(&self, name: &str, params: &PatchParams, patch: &Patch<Value>) -> kube::Result<Scale> {
        let ask = |requests: Requests| requests.patch_subresource("scale", name, params, patch);
        self.ask("patch_scale", Some(name), ask).await
    }

    pub async fn delete(&self, name: &str, params: &DeleteParams) -> kube::Result<()> {
        self.ask::<Value>("delete", Some(name), |requests| requests.delete(name, params)).await.map(drop)
    }
}

/// A request, or why it cannot be built.
pub type RequestResult = kube::Result<Request<Vec<u8>>>;

/// Builds the request for one object, to be read as text.
pub fn get(kind: ObjectKind, namespace: Option<&str>, name: &str) -> RequestResult {
    asked(kind, namespace, Some(name), |requests| requests.get(name, &GetParams::default()))
}

/// Reads an object as JSON; `None` when it or its kind does not exist.
pub async fn read(client: &Client, kind: ObjectKind, namespace: &str, name: &str) -> kube::Result<Option<Value>> {
    unless(&[404], client.request(get(kind, Some(namespace), name)?).await)
}

/// Builds the discovery request for the version of a kind, to be read as text.
pub fn versions(kind: ObjectKind) -> RequestResult {
    let request = Request::get(root(kind)).body(Vec::new());
    request.map_err(|error| kube::Error::BuildRequest(RequestError::BuildRequest(error)))
}

/// Builds the request for a list, to be read as text.
pub fn list(kind: ObjectKind, namespace: Option<&str>, params: &ListParams) -> RequestResult {
    asked(kind, namespace, None, |requests| requests.list(params))
}

/// Builds the request for a list of metadata, to be read as text.
pub fn list_metadata(kind: ObjectKind, namespace: Option<&str>, params: &ListParams) -> RequestResult {
    asked(kind, namespace, None, |requests| requests.list_metadata(params))
}

fn asked(
    kind: ObjectKind,
    namespace: Option<&str>,
    name: Option<&str>,
    ask: impl FnOnce(Requests) -> Result<Request<Vec<u8>>, RequestError>,
) -> RequestResult {
    let root = root(kind);
    let requests = Requests::new(match namespace.filter(|_| kind.namespaced) {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{}", kind.plural),
        None => format!("{root}/{}", kind.plural),
    });
    check(namespace, name).and_then(|()| ask(requests)).map_err(kube::Error::BuildRequest)
}

/// Returns the path of the version of a kind.
pub fn root(kind: ObjectKind) -> String {
    let ObjectKind { group, version, .. } = kind;
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::pod::POD;

    #[test]
    fn a_name_cannot_lead_elsewhere() {
        let path = |name: &str| get(POD, Some("ns"), name).map(|request| request.uri().to_string());
        assert!(path("pd-1").unwrap().starts_with("/api/v1/namespaces/ns/pods/pd-1"));
        for name in ["/", "..", "a?watch=true", "x/status", "a%2f..", ""] {
            let why = path(name).unwrap_err().to_string();
            assert!(why.contains(&format!("name {name:?}")), "{why}");
        }
        assert!(get(POD, Some("ns/secrets"), "a").is_err() && list(POD, Some("../x"), &ListParams::default()).is_err());
    }
}
