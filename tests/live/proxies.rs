//! Commands that reach the API server through a proxy, as kubectl does.

use std::process::Output;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::config::Kubeconfig;

use crate::common::prelude::*;
use crate::common::tunnel::Tunnel;

/// The API server by a name that nobody here can look up but its proxy.
const NAME: &str = "kubernetes.default.svc";

/// Writes a kubeconfig that names the server so, and this proxy; returns its path and the port of the API server.
fn kubeconfig(stage: &Stage, host: &str, proxy: Option<&str>) -> (PathBuf, String) {
    let mut file = Kubeconfig::read_from(&stage.plane.kubeconfig).unwrap();
    let cluster = file.clusters[0].cluster.as_mut().unwrap();
    let port = cluster.server.as_deref().unwrap().rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    cluster.server = Some(format!("https://{host}:{port}"));
    cluster.proxy_url = proxy.map(str::to_owned);
    let path = stage.plane.dir.join(format!("conf/{}-{host}.kubeconfig", stage.namespace));
    std::fs::write(&path, serde_json::to_string(&file).unwrap()).unwrap();
    (path, port)
}

async fn status(kubeconfig: &Path, env: &[(&str, &str)]) -> Output {
    let mut command = rolegate_command(kubeconfig, &["status", "-n", "default"]);
    ["HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"].iter().for_each(|name| _ = command.env_remove(name));
    command.envs(env.iter().copied()).output().await.unwrap()
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test]
async fn a_proxy_of_the_kubeconfig_is_used_whatever_the_environment_says() {
    let stage = Stage::new("proxy-url").await;
    let tunnel = Tunnel::start().await;
    for (scheme, how) in [("http", "CONNECT"), ("socks5", "SOCKS"), ("socks5h", "SOCKS")] {
        let proxy = format!("{scheme}://{}", tunnel.address);
        let (file, port) = kubeconfig(&stage, NAME, Some(&proxy));
        let output = status(&file, &[("NO_PROXY", "*"), ("HTTPS_PROXY", "http://127.0.0.1:1")]).await;
        assert!(output.status.success(), "{output:?}");
        assert!(tunnel.asked().contains(&format!("{how} {NAME}:{port}")), "{scheme}");
    }
    let (file, _) = kubeconfig(&stage, NAME, Some("ftp://me:secret@127.0.0.1:1"));
    let told = error(&status(&file, &[]).await);
    let words = "no cluster to talk to: the proxy of the kubeconfig, or of HTTPS_PROXY: must be a URL that begins with http://, https:// or socks5://";
    assert!(told.contains(words) && !told.contains("secret"), "{told}");
    let (file, port) = kubeconfig(&stage, NAME, Some("http://me:secret@127.0.0.1:1"));
    let told = error(&status(&file, &[]).await);
    let words = format!("cannot reach the API server at https://{NAME}:{port}/ through the proxy at 127.0.0.1:1: ");
    assert!(told.contains(&words) && !told.contains("secret"), "{told}");
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_used_for_servers_that_no_proxy_does_not_name() {
    let stage = Stage::new("proxy-env").await;
    let tunnel = Tunnel::start().await;
    let proxy = tunnel.address.to_string();
    let (file, port) = kubeconfig(&stage, NAME, None);
    let asked = [format!("CONNECT {NAME}:{port}")];
    for excepted in ["", "127.0.0.1,10.0.0.0/8", "other.svc"] {
        let output = status(&file, &[("HTTPS_PROXY", &proxy), ("NO_PROXY", excepted)]).await;
        assert!(output.status.success(), "{output:?}");
        assert!(tunnel.asked().starts_with(&asked), "{excepted}");
    }
    for excepted in ["*", NAME, ".svc", "a.example, default.svc"] {
        let told = error(&status(&file, &[("https_proxy", &proxy), ("no_proxy", excepted)]).await);
        assert!(told.contains(&format!("cannot reach the API server at https://{NAME}:{port}/: ")), "{told}");
        assert_eq!(tunnel.asked(), [""; 0], "{excepted}");
    }
    // Nobody asks a proxy for this machine.
    for host in ["127.0.0.1", "localhost"] {
        let (file, _) = kubeconfig(&stage, host, None);
        let output = status(&file, &[("HTTPS_PROXY", "http://127.0.0.1:1")]).await;
        assert!(output.status.success(), "{output:?}");
    }
    let told = error(&status(&file, &[("HTTPS_PROXY", &proxy), ("NO_PROXY", "a.example,")]).await);
    assert!(told.contains("no cluster to talk to: NO_PROXY: "), "{told}");
}

/// The certificates are of kinds that kubectl takes; whose keys they are does not matter for what is said.
#[tokio::test]
async fn certificates_that_cannot_be_used_are_named() {
    let stage = Stage::new("client-certificates").await;
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let told = async |certificate: &str, authority: Option<&str>| {
        let mut file = Kubeconfig::read_from(&stage.plane.kubeconfig).unwrap();
        let user = file.auth_infos[0].auth_info.as_mut().unwrap();
        user.token = None;
        user.client_certificate_data = Some(BASE64_STANDARD.encode(certificate));
        user.client_key_data = Some(BASE64_STANDARD.encode(&key).into());
        if let Some(authority) = authority {
            (user.client_certificate_data, user.client_key_data) = (None, None);
            let cluster = file.clusters[0].cluster.as_mut().unwrap();
            cluster.certificate_authority_data = Some(BASE64_STANDARD.encode(authority));
        }
        let path = stage.plane.dir.join("conf/client-certificates.kubeconfig");
        std::fs::write(&path, serde_json::to_string(&file).unwrap()).unwrap();
        error(&status(&path, &[]).await)
    };
    let known = [
        (include_str!("../fixtures/certificates/version-1.pem"), "CN=v1 (X.509 version 1, EC key of 256 bits)"),
        (include_str!("../fixtures/certificates/p-521.pem"), "CN=p521 (X.509 version 3, EC key of 521 bits)"),
    ];
    for (certificate, words) in known {
        let words = format!("the client certificate of the kubeconfig, O=system:masters, {words}, cannot be used: ");
        assert!(told(certificate, None).await.contains(&words));
    }
    let leaf = std::fs::read_to_string(stage.plane.dir.join("pki/apiserver.crt")).unwrap();
    let told = told("", Some(&leaf)).await;
    assert!(told.contains("The kubeconfig trusts CN=kube-apiserver (not the certificate of a CA)"), "{told}");
}
