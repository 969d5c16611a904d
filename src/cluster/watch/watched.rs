//! Objects as text, for watches, and objects whose shape may be unexpected.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::api::{Meta, Object, ObjectKind};
use crate::rules::decode::decode;

/// An object as text, with the metadata that kube needs.
#[derive(Clone, Debug)]
pub struct Text {
    meta: ObjectMeta,
    json: Box<RawValue>,
}

impl Text {
    pub fn json(&self) -> &str {
        self.json.get()
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let resource_version = Head::of(json.get()).metadata.resource_version.map(Cow::into_owned);
        Ok(Self { meta: ObjectMeta { resource_version, ..ObjectMeta::default() }, json })
    }
}

impl Resource for Text {
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

/// An object of another project's kind. An unexpected shape must not stop the watch of all objects.
#[derive(Clone, Debug)]
pub struct Guarded<T> {
    meta: Meta,
    /// The object, or why it cannot be read.
    pub read: Result<T, String>,
}

impl<'de, T: Object + for<'a> Deserialize<'a>> Deserialize<'de> for Guarded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let read = decode::<T>(json.get()).map_err(|error| error.to_string());
        let meta = read.as_ref().map_or_else(|_| Head::of(json.get()).meta(), |object| object.meta().clone());
        Ok(Self { meta, read })
    }
}

impl<T> Object for Guarded<T> {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// The metadata that tells one object from others.
#[derive(Default, Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    metadata: HeadMeta<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMeta<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    resource_version: Option<Cow<'a, str>>,
}

impl<'a> Head<'a> {
    fn of(json: &'a str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    fn meta(self) -> Meta {
        let HeadMeta { name, namespace, uid, resource_version } = self.metadata;
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        Meta {
            name: owned(name),
            namespace: owned(namespace),
            uid: owned(uid),
            resource_version: owned(resource_version),
            ..Meta::default()
        }
    }
}
