//! cert-manager's chain: a self-signed issuer, our CA, its issuer, and the serving certificate.

use serde_json::{Value, json};

use super::settings::Settings;

/// Returns the name of the Secret with the serving certificate, which the pods mount.
pub fn serving_secret(name: &str) -> String {
    format!("{name}-serving")
}

/// Returns the objects of the chain, in the order of their dependencies.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let Settings { name, namespace, .. } = settings;
    let (root, ca) = (format!("{name}-root"), format!("{name}-ca"));
    let object = |kind: &str, named: &str, comment: &str, spec: Value| {
        json!({
            "?": "cert-manager",
            "#": comment,
            "apiVersion": "cert-manager.io/v1",
            "kind": kind,
            "metadata": super::metadata(settings, named, &Value::Null),
            "spec": spec,
        })
    };
    let by = |issuer: &str| json!({ "kind": "Issuer", "name": issuer });
    let key = json!({
        "algorithm": "ECDSA",
        "size": 256,
        "#rotationPolicy": "A new key with each certificate.",
        "rotationPolicy": "Always",
    });
    let authority = json!({
        "isCA": true,
        "commonName": format!("{name} webhook CA"),
        "secretName": ca,
        "#duration": "Ten years. The injector adds a new CA to the old one once a certificate was issued by it.",
        "duration": "87600h",
        "renewBefore": "8760h",
        "privateKey": key,
        "issuerRef": by(&root),
    });
    let host = format!("{name}.{namespace}.svc");
    let serving = json!({
        "secretName": serving_secret(&settings.name),
        "dnsNames": [host, format!("{host}.cluster.local")],
        "#duration": "A pod sees a renewed Secret within two minutes, and reads it again every five seconds.",
        "duration": "2160h",
        "renewBefore": "720h",
        "privateKey": key,
        "usages": ["digital signature", "server auth"],
        "issuerRef": by(&ca),
    });
    vec![
        object("Issuer", &root, "Signs nothing but our CA.", json!({ "selfSigned": {} })),
        object(
            "Certificate",
            &ca,
            "Our CA: the API server trusts it for our webhooks and for nothing else.",
            authority,
        ),
        object("Issuer", &ca, "Issues with our CA.", json!({ "ca": { "secretName": ca } })),
        object("Certificate", name, "What the webhook serves; its CA goes into the configurations.", serving),
    ]
}
