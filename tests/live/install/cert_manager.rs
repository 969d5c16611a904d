//! Certificates by cert-manager: its controllers issue them, its injector brings the CA to the webhooks, and rolegate serves
//! each renewed one without a restart.

use std::fs;
use std::os::unix::fs::symlink;

use rustls::pki_types::ServerName;

use crate::common::http::tls_to;
use crate::common::prelude::*;
use crate::common::rolegate::client_configs;
use crate::install::support::install;

/// The mount of a Secret, as the kubelet keeps it: each version a directory, and a link that is swapped.
struct Mount {
    folder: PathBuf,
    versions: usize,
}

impl Mount {
    fn new(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).unwrap();
        Self { folder, versions: 0 }
    }

    fn publish(&mut self, secret: &Secret) {
        self.versions += 1;
        let version = format!("..{}", self.versions);
        let folder = self.folder.join(&version);
        fs::create_dir(&folder).unwrap();
        for (name, data) in secret.data.as_ref().unwrap() {
            fs::write(folder.join(name), &data.0).unwrap();
            _ = symlink(Path::new("..data").join(name), self.folder.join(name));
        }
        symlink(version, self.folder.join("..new")).unwrap();
        fs::rename(self.folder.join("..new"), self.folder.join("..data")).unwrap();
    }
}

/// The Secret with a certificate, as soon as it is another than before.
async fn issued(client: &Client, before: Option<&Secret>) -> Secret {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM);
    eventually(PATIENT, "a certificate is issued", async || {
        let secret = secrets.get("rolegate-serving").await.map_err(|error| error.to_string())?;
        let certificate = |secret: &Secret| secret.data.as_ref().and_then(|data| data.get("tls.crt").cloned());
        let found = certificate(&secret).filter(|text| !text.0.is_empty());
        let is_another = found.is_some() && found != before.and_then(certificate);
        if is_another { Ok(secret) } else { Err("the old one".to_owned()) }
    })
    .await
}

fn authority(secret: &Secret) -> Vec<u8> {
    secret.data.as_ref().unwrap()["ca.crt"].0.clone()
}

/// Every `caBundle` that the API server has.
async fn bundles(client: &Client) -> Vec<Vec<u8>> {
    let all = client_configs(client, "rolegate").await.unwrap();
    all.into_iter().map(|config| config.ca_bundle.map(|bundle| bundle.0).unwrap_or_default()).collect()
}

/// True when a bundle has this certificate, both in PEM.
fn has(bundle: &[u8], certificate: &[u8]) -> bool {
    String::from_utf8_lossy(bundle).contains(String::from_utf8_lossy(certificate).trim())
}

/// The certificate that is served to whoever trusts this CA and asks for this name.
async fn served(rolegate: &Rolegate, name: &str, authority: &[u8]) -> Result<Vec<u8>, String> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let stream = tls_to(rolegate.webhook, name, authority).await.map_err(|error| error.to_string())?;
    Ok(stream.get_ref().1.peer_certificates().unwrap()[0].to_vec())
}

#[tokio::test]
async fn what_cert_manager_issues_is_served_and_renewed_without_a_restart() {
    let plane = ControlPlane::start_with("kwok,cert-manager", &[]);
    let mut installed = install(plane, &["--certificates", "cert-manager"]).await;
    let client = installed.plane.client().await;
    let stage = Stage::on(installed.plane.clone(), "managed").await;
    let first = issued(&client, None).await;
    let mut mount = Mount::new(installed.plane.dir.join("conf/certificates"));
    mount.publish(&first);
    let file = |name: &str| mount.folder.join(name).display().to_string();
    installed.launch = installed.launch.flag("cert-file", &file("tls.crt")).flag("key-file", &file("tls.key"));

    let rolegate = installed.serve(&stage).await;
    let ours = authority(&first);
    assert!(bundles(&client).await.iter().all(|bundle| has(bundle, &ours)), "brought there by the injector alone");
    let name = "rolegate.rolegate-system.svc";
    let mut last = served(&rolegate, name, &ours).await.unwrap();
    // It has not made certificates of its own, and could not have.
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM);
    assert!(secrets.get_opt("rolegate-certificates").await.unwrap().is_none());

    // Another name is asked for; then the Secret is lost. Both times there is a new key.
    let mut before = first;
    let more = json!({ "spec": { "dnsNames": [name, "gate.example"] } }).to_string();
    for renewal in ["another name", "the Secret is lost"] {
        if renewal == "another name" {
            let patch = ["patch", "certificate", "rolegate", "-n", SYSTEM, "--type=merge", "-p", &more];
            installed.plane.must(&patch, "");
        } else {
            secrets.delete("rolegate-serving", &DeleteParams::default()).await.unwrap();
        }
        let renewed = issued(&client, Some(&before)).await;
        assert_eq!(authority(&renewed), ours);
        assert_ne!(renewed.data.as_ref().unwrap()["tls.key"], before.data.as_ref().unwrap()["tls.key"]);
        mount.publish(&renewed);
        last = eventually(PATIENT, "the new one is served", async || {
            let found = served(&rolegate, name, &ours).await?;
            if found == last { Err("the old one".to_owned()) } else { Ok(found) }
        })
        .await;
        assert_eq!(served(&rolegate, "gate.example", &ours).await, Ok(last.clone()), "{renewal}");
        let probe = Group::new("probe").pod("main", "probe", &stage.namespace);
        let path = format!("{CORE}/namespaces/managed/pods?dryRun=All");
        let look = async || stage.send("POST", &path, &probe).await;
        holds(Duration::from_millis(500), "pods are held", look, |created| created.code == 201).await;
        before = renewed;
    }
    assert!(bundles(&client).await.iter().all(|bundle| has(bundle, &ours)));

    // A new CA: the injector adds it to the old one once something was issued by it, and that is then served.
    secrets.delete("rolegate-ca", &DeleteParams::default()).await.unwrap();
    let data = async || secrets.get_opt("rolegate-ca").await.unwrap().and_then(|found| found.data);
    until_found("a new CA", data, |data| data.as_ref().is_some_and(|data| data["tls.crt"].0 != ours)).await;
    secrets.delete("rolegate-serving", &DeleteParams::default()).await.unwrap();
    let renewed = issued(&client, Some(&before)).await;
    let theirs = authority(&renewed);
    assert_ne!(theirs, ours);
    mount.publish(&renewed);
    eventually(PATIENT, "the new CA is trusted, and its certificate served", async || {
        let trusted = bundles(&client).await.iter().all(|bundle| has(bundle, &theirs) && has(bundle, &ours));
        served(&rolegate, name, &theirs).await.map(|_| ())?;
        if trusted { Ok(()) } else { Err("not trusted yet".to_owned()) }
    })
    .await;
    rolegate.until_ready().await;
}
