//! Chromium without a screen, by the WebDriver protocol.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use ::http::Request;
use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::common::{http, until_found};

/// It shows nothing but what it is told to, and asks nobody else for anything.
const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",
];

/// Finds what people who see or hear differently stumble over.
const AXE: &str = "target/tools/axe/axe.js";

/// A window.
pub struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens a window.
    pub async fn open() -> Self {
        let profile = tempfile::tempdir().unwrap();
        // A group of its own, so that its windows end with it.
        let mut driver = std::process::Command::new("chromedriver");
        driver.args(["--port=0", "--allowed-ips=127.0.0.1"]).process_group(0);
        driver.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver =
            Command::from(driver).kill_on_drop(true).spawn().expect("tests/needs.sh installs chromedriver");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next_line().await.unwrap().expect("it says where it listens");
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                break port.trim_end_matches('.').parse().unwrap();
            }
        };
        // Whoever reads nothing more must not stop it from writing.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let folder = format!("--user-data-dir={}", profile.path().display());
        let mut browser = Self { driver, address, session: String::new(), _profile: profile };
        let flags: Vec<_> = FLAGS.iter().map(|flag| (*flag).to_owned()).chain([folder]).collect();
        let wanted = json!({ "alwaysMatch": { "goog:chromeOptions": { "args": flags } } });
        let answer = browser.ask("POST", "/session", &json!({ "capabilities": wanted })).await;
        answer["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        browser
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut sender = http::handshake(TcpStream::connect(self.address).await.unwrap()).await.unwrap();
        let body = if method == "GET" { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("host", self.address.to_string());
        let request = request.header("content-type", "application/json").body(Full::new(body)).unwrap();
        let answer = sender.send_request(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        let mut answer: Value = serde_json::from_slice(&answer).unwrap();
        assert!(answer["value"].get("error").is_none(), "{path}: {answer}");
        answer["value"].take()
    }

    async fn tell(&self, what: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{what}", self.session), body).await
    }

    /// Opens a page.
    pub async fn show(&self, url: &str) {
        self.tell("url", &json!({ "url": url })).await;
    }

    /// What a script returns.
    pub async fn script(&self, script: &str) -> Value {
        self.tell("execute/sync", &json!({ "script": script, "args": [] })).await
    }

    /// The text that a reader sees.
    pub async fn text(&self) -> String {
        self.script("return document.body.innerText").await.as_str().unwrap().to_owned()
    }

    /// Waits until the text that a reader sees has all of these.
    pub async fn until(&self, what: &str, parts: &[&str]) {
        until_found(what, async || self.text().await, |text| parts.iter().all(|part| text.contains(part))).await;
    }

    /// What a screen reader says of each picture.
    pub async fn pictures(&self) -> Vec<String> {
        let all = "return [...document.querySelectorAll('svg[role=img]')].map((one) => one.getAttribute('aria-label'))";
        let said = self.script(all).await;
        said.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
    }

    /// Presses keys, one after the other: letters, or `\u{e004}` for Tab, `\u{e007}` for Enter (WebDriver).
    pub async fn press(&self, keys: &str) {
        let strokes = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() })));
        let actions = json!([{ "type": "key", "id": "keys", "actions": strokes.collect::<Vec<_>>() }]);
        self.tell("actions", &json!({ "actions": actions })).await;
    }

    /// Looks as a phone or a desk would show it, in light or in darkness.
    pub async fn look(&self, width: u32, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features })).await;
        let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", &size).await;
    }

    async fn devtools(&self, command: &str, params: &Value) -> Value {
        self.tell("goog/cdp/execute", &json!({ "cmd": command, "params": params })).await
    }

    /// The whole page as a PNG.
    pub async fn screenshot(&self) -> Vec<u8> {
        let shot = self.devtools("Page.captureScreenshot", &json!({ "captureBeyondViewport": true })).await;
        base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()
    }

    /// What axe-core finds: rule, and the first element.
    pub async fn stumbles(&self) -> Vec<String> {
        let axe = std::fs::read_to_string(AXE).expect("tests/needs.sh gets axe-core");
        self.script(&axe).await;
        let run = "const done = arguments[0]; axe.run(document).then((found) => done(found.violations.map((one) => \
                   `${one.id}: ${one.help}: ${one.nodes[0].html}`)), (error) => done([String(error)]))";
        let found = self.tell("execute/async", &json!({ "script": run, "args": [] })).await;
        found.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(group) = self.driver.id() {
            _ = std::process::Command::new("kill").args(["-9", "--", &format!("-{group}")]).status();
        }
    }
}
