//! Errors of a kubeconfig in words of its fields.

use std::env;
use std::fmt::Display;

use kube::Config;
use kube::client::{AuthError, RustlsTlsError};
use kube::config::{AuthInfo, KubeconfigError, LoadDataError};

use super::failure::{one_line, root_cause};
use super::yaml_words::yaml_words;

/// What the address of a cluster must be.
pub const SERVER: &str = "the `server` of the kubeconfig's cluster must be a URL such as https://HOST:PORT";

/// Returns what is wrong with a kubeconfig.
pub fn kubeconfig_words(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::CurrentContextNotSet => {
            "the kubeconfig names no current context: run `kubectl config use-context`, or set --context".to_owned()
        }
        KubeconfigError::LoadContext(name) => format!("the kubeconfig has no context {name:?}"),
        KubeconfigError::LoadClusterOfContext(name) => {
            format!("the kubeconfig has no cluster {name:?}, which its context names")
        }
        KubeconfigError::FindPath => {
            "no kubeconfig: neither --kubeconfig, $KUBECONFIG nor a home folder is set".to_owned()
        }
        KubeconfigError::ReadConfig(error, path) => one_line(&format!("kubeconfig {}: {error}", path.display())),
        KubeconfigError::Parse(error) => {
            let (at, words) = yaml_words(error);
            at.map_or_else(
                || format!("the kubeconfig cannot be read: {words}"),
                |at| format!("the kubeconfig cannot be read: line {}: {words}", at.line),
            )
        }
        KubeconfigError::MissingClusterUrl | KubeconfigError::ParseClusterUrl(_) => SERVER.to_owned(),
        KubeconfigError::ParseProxyUrl(_) => "the `proxy-url` of the kubeconfig's cluster is not a URL".to_owned(),
        KubeconfigError::LoadCertificateAuthority(error) => data_words("certificate-authority", error),
        KubeconfigError::LoadClientCertificate(error) => data_words("client-certificate", error),
        KubeconfigError::LoadClientKey(error) => data_words("client-key", error),
        KubeconfigError::ParseCertificates(_) => {
            "the `certificate-authority` of the kubeconfig has no certificates in PEM".to_owned()
        }
        KubeconfigError::ParseNoProxy(why) => format!("NO_PROXY: {}", root_cause(why)),
        KubeconfigError::KindMismatch | KubeconfigError::ApiVersionMismatch => one_line(&error.to_string()),
    }
}

/// Describes data that a kubeconfig holds itself, or in another file.
fn data_words(field: &str, error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(_) => format!("the `{field}-data` of the kubeconfig is not base64"),
        LoadDataError::ReadFile(error, path) => {
            one_line(&format!("the `{field}` of the kubeconfig: {}: {error}", path.display()))
        }
        LoadDataError::NoBase64DataOrFile => format!("the kubeconfig sets neither `{field}` nor `{field}-data`"),
    }
}

/// Returns why no client can be made for a user of the kubeconfig.
pub fn client_words(error: &kube::Error, user: &AuthInfo) -> String {
    match error {
        kube::Error::Auth(error) => auth_words(error, user),
        kube::Error::InferKubeconfig(error) => kubeconfig_words(error),
        kube::Error::RustlsTls(
            RustlsTlsError::InvalidIdentityPem(_)
            | RustlsTlsError::MissingPrivateKey
            | RustlsTlsError::MissingCertificate
            | RustlsTlsError::UnknownPrivateKeyFormat,
        ) => "the client certificate or the client key of the kubeconfig is not one in PEM".to_owned(),
        kube::Error::RustlsTls(RustlsTlsError::AddRootCertificate(_)) => {
            "the `certificate-authority` of the kubeconfig is not the certificate of an authority".to_owned()
        }
        other => root_cause(other),
    }
}

fn auth_words(error: &AuthError, user: &AuthInfo) -> String {
    let command = user.exec.as_ref().and_then(|exec| exec.command.as_deref()).unwrap_or_default();
    let plugin = |why: &dyn Display| one_line(&format!("the credential plugin {command:?} of the kubeconfig {why}"));
    match error {
        AuthError::AuthExecStart(error) => plugin(&format!("cannot be run: {error}")),
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = said.trim();
            plugin(&format!("ended with {}{}{said}", out.status, if said.is_empty() { "" } else { ": " }))
        }
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed => plugin(&"answers with no ExecCredential"),
        AuthError::MissingCommand => "the `exec` of the kubeconfig has no `command`".to_owned(),
        AuthError::AuthExec(_) => "the `auth-provider` of the kubeconfig is not supported: use `exec`".to_owned(),
        AuthError::ReadTokenFile(error, path) => {
            one_line(&format!("the `tokenFile` of the kubeconfig: {}: {error}", path.display()))
        }
        AuthError::InvalidBearerToken(_) => "the token of the kubeconfig has a character that no token has".to_owned(),
        AuthError::InvalidBasicAuth(_) => {
            "the user name or password of the kubeconfig has a character that cannot be sent".to_owned()
        }
        other => root_cause(other),
    }
}

/// Returns why there is neither a kubeconfig nor the service account of a pod. Only pods have an address of their cluster.
pub fn nowhere(kubeconfig: &KubeconfigError) -> String {
    let pod = env::var_os("KUBERNETES_SERVICE_HOST").and_then(|_| Config::incluster().err());
    match pod {
        Some(error) => format!("the service account of this pod cannot be used: {}", root_cause(&error)),
        None => kubeconfig_words(kubeconfig),
    }
}
