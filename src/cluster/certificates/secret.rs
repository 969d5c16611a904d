//! Conversion of certificates from and to a Secret.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;

use crate::cluster::certificates::bundle::CaBundle;
use crate::cluster::certificates::plan::Stored;
use crate::tls::authority::Issued;

/// Reads a Secret. A missing or non-text part becomes an empty text, which no check accepts as a certificate.
pub fn read(secret: &Secret) -> Stored {
    let text = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key));
        bytes.and_then(|bytes| String::from_utf8(bytes.0.clone()).ok()).unwrap_or_default()
    };
    let issued = |cert: &str, key: &str| Issued { cert_pem: text(cert), key_pem: text(key) };
    Stored {
        ca: issued("ca.crt", "ca.key"),
        leaf: issued("tls.crt", "tls.key"),
        bundle: CaBundle(text("ca-bundle.crt")),
    }
}

/// Annotation of a Secret with the token of a ServiceAccount.
const OF_ACCOUNT: &str = "kubernetes.io/service-account.name";
/// Types of a Secret that may hold certificates.
const TYPES: &[&str] = &["kubernetes.io/tls", "Opaque"];

/// Returns why a Secret of our name is not ours: who made it may read what is written to it, or it is deleted with its owner.
pub fn foreign(secret: &Secret) -> Option<&'static str> {
    let meta = &secret.metadata;
    let is_listed = |all: &Vec<_>| !all.is_empty();
    if secret.type_.as_deref().is_some_and(|written| !TYPES.contains(&written)) {
        Some("it is neither of type kubernetes.io/tls nor Opaque")
    } else if secret.immutable == Some(true) {
        Some("it is immutable")
    } else if meta.owner_references.as_ref().is_some_and(is_listed) {
        Some("it has an owner, with which it would be deleted")
    } else if meta.annotations.as_ref().is_some_and(|all| all.contains_key(OF_ACCOUNT)) {
        Some("it names a ServiceAccount")
    } else {
        None
    }
}

/// Returns the Secret to write in place of `known`: with its resourceVersion, so that a write based on a stale read is
/// refused, and with its labels and other data, which belong to others.
pub(crate) fn write(known: Option<&Secret>, name: &str, stored: &Stored) -> Secret {
    let mut secret = known.cloned().unwrap_or_else(|| Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([("app.kubernetes.io/managed-by".to_owned(), "rolegate".to_owned())])),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    });
    secret.metadata.managed_fields = None;
    let data = secret.data.get_or_insert_default();
    for (key, text) in [
        ("ca.crt", &stored.ca.cert_pem),
        ("ca.key", &stored.ca.key_pem),
        ("tls.crt", &stored.leaf.cert_pem),
        ("tls.key", &stored.leaf.key_pem),
        ("ca-bundle.crt", &stored.bundle.0),
    ] {
        data.insert(key.to_owned(), ByteString(text.clone().into_bytes()));
    }
    secret
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;

    fn stored() -> Stored {
        let issued = |name: &str| Issued { cert_pem: format!("{name} cert"), key_pem: format!("{name} key") };
        Stored { ca: issued("ca"), leaf: issued("leaf"), bundle: CaBundle("bundle".to_owned()) }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let secret = write(None, "certificates", &stored());
        assert_eq!(read(&secret), stored());
        assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));
    }

    #[test]
    fn what_others_keep_there_stays() {
        let mut known = write(None, "certificates", &stored());
        known.metadata.resource_version = Some("7".to_owned());
        known.metadata.annotations = Some(BTreeMap::from([("theirs".to_owned(), "yes".to_owned())]));
        known.data.get_or_insert_default().insert("theirs".to_owned(), ByteString(vec![0xff]));
        let written = write(Some(&known), "certificates", &stored());
        assert_eq!(written, known);
    }

    #[test]
    fn a_secret_of_our_name_may_be_anothers() {
        let ours = write(None, "certificates", &stored());
        let opaque = Secret { type_: Some("Opaque".to_owned()), immutable: Some(false), ..ours.clone() };
        assert_eq!([&ours, &opaque, &Secret::default()].map(foreign), [None; 3]);
        let of_account = Secret { type_: Some("kubernetes.io/service-account-token".to_owned()), ..ours.clone() };
        let fixed = Secret { immutable: Some(true), ..ours.clone() };
        let (mut owned, mut named) = (ours.clone(), ours);
        owned.metadata.owner_references = Some(vec![OwnerReference::default()]);
        named.metadata.annotations = Some(BTreeMap::from([(OF_ACCOUNT.to_owned(), "default".to_owned())]));
        for theirs in [of_account, fixed, owned, named] {
            assert!(foreign(&theirs).is_some(), "{theirs:?}");
        }
    }

    #[test]
    fn an_empty_secret_reads_as_empty_texts() {
        let read = read(&Secret::default());
        assert!(read.ca.cert_pem.is_empty() && read.leaf.key_pem.is_empty() && read.bundle.0.is_empty());
    }
}
