//! Slim types as kube resources: watched and read with the needed fields only.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicResourceScope;
use kube::{Client, Resource};
use serde::{Deserialize, Deserializer};

use crate::api::{Meta, Object, ObjectKind};
use crate::cluster::objects::Objects;
use crate::rules::decode_value;

/// An object of the API server that is read as `T`.
#[derive(Clone, Debug)]
pub struct Watched<T> {
    /// The metadata that kube needs.
    meta: ObjectMeta,
    pub object: T,
}

impl<'de, T: Object + Deserialize<'de>> Deserialize<'de> for Watched<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = T::deserialize(deserializer)?;
        let Meta { name, namespace, uid, resource_version, .. } = object.meta();
        let meta = ObjectMeta {
            name: name.clone(),
            namespace: namespace.clone(),
            uid: uid.clone(),
            resource_version: resource_version.clone(),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, object })
    }
}

impl<T> Resource for Watched<T> {
    type DynamicType = ObjectKind;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ObjectKind) -> Cow<'_, str> {
        kind.kind.into()
    }

    fn group(kind: &ObjectKind) -> Cow<'_, str> {
        kind.group.into()
    }

    fn version(kind: &ObjectKind) -> Cow<'_, str> {
        kind.version.into()
    }

    fn plural(kind: &ObjectKind) -> Cow<'_, str> {
        kind.plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// Returns the API of a kind, in one namespace or in all; `namespace` is ignored for cluster-scoped kinds.
pub fn api<T>(client: &Client, kind: ObjectKind, namespace: Option<&str>) -> Objects<Watched<T>> {
    Objects::new(client, &kind, namespace.filter(|_| kind.namespaced))
}

/// An object of another project's kind. An unexpected shape must not stop the watch of all objects.
#[derive(Clone, Debug)]
pub struct Guarded<T> {
    meta: Meta,
    /// The object, or why it cannot be read.
    pub read: Result<T, String>,
}

impl<'de, T: Object + for<'a> Deserialize<'a>> Deserialize<'de> for Guarded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let meta = value.get("metadata").map(Meta::deserialize).transpose().ok().flatten().unwrap_or_default();
        Ok(Self { meta, read: decode_value(&value).map_err(|error| error.to_string()) })
    }
}

impl<T> Object for Guarded<T> {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}
