//! The page in a browser: what it shows while a group comes up and is updated, by mouse, keyboard and screen reader, on a desk
//! and on a phone. The pictures in `docs/pictures` are made here: `UPDATE_DOCS=1 cargo test --test live page::drawn`.

use super::browser::Browser;
use super::scene;
use crate::common::prelude::*;
use crate::rollouts::support::Duo;

const DESK: u32 = 1200;
const PHONE: u32 = 390;

fn url(rolegate: &Rolegate, place: &str) -> String {
    format!("http://{}/page/{place}", rolegate.admin)
}

/// Keeps a picture for the docs, when that is asked for.
async fn picture(browser: &Browser, name: &str) {
    let shot = browser.screenshot().await;
    assert!(shot.starts_with(b"\x89PNG"), "{name}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), shot).unwrap();
    }
}

/// Nothing to stumble over, in both schemes, on a desk and on a phone, and nothing that has to be scrolled sideways.
async fn is_accessible(browser: &Browser) {
    for (width, scheme) in [(DESK, "dark"), (PHONE, "dark"), (PHONE, "light"), (DESK, "light")] {
        browser.look(width, scheme).await;
        assert_eq!(browser.stumbles().await, Vec::<String>::new(), "{width} {scheme}");
        let wide =
            browser.script("return document.documentElement.scrollWidth - document.documentElement.clientWidth").await;
        assert_eq!(wide, 0, "{width}: {}", browser.text().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_comes_up_before_the_eyes_of_who_looks() {
    let (stage, rolegate) = Stage::new("page-story").await.serve().await;
    scene(&stage).await;
    let browser = Browser::open().await;
    browser.look(DESK, "light").await;
    browser.show(&url(&rolegate, "")).await;
    browser.until("the list", &["page-story/llm", "0/3 segments", "12 held", "PreviousSegmentNotReady"]).await;
    is_accessible(&browser).await;

    // By keyboard alone: to the group's name, and in.
    browser.press("\u{e004}").await;
    let focused = async || browser.script("return document.activeElement.textContent").await;
    eventually(PATIENT, "the name of the group", async || {
        browser.press("\u{e004}").await;
        let focused = focused().await;
        if focused == "page-story/llm" { Ok(()) } else { Err(focused) }
    })
    .await;
    browser.press("\u{e007}").await;
    let waits =
        ["segment 1: released", "segment 2: held PreviousSegmentNotReady", "rack-a", "rack-b", "Timeline", "live"];
    browser.until("the group", &waits).await;
    eventually(PATIENT, "each pod in words", async || {
        let said = browser.pictures().await;
        let has = |text: &str| said.iter().any(|one| one == text);
        let all = has("prefill 0 to 3: 4 scheduled, not ready") && has("decode 2 to 3: 2 held");
        if all { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    is_accessible(&browser).await;
    picture(&browser, "status-page.png").await;
    browser.look(DESK, "dark").await;
    picture(&browser, "status-page-dark.png").await;
    browser.look(PHONE, "light").await;
    picture(&browser, "status-page-phone.png").await;
    browser.look(DESK, "light").await;

    // It goes on by itself, and says the sentence to who hears it.
    stage.let_ready(Pod::is_released).await;
    browser.until("the next one", &["segment 1: ready", "segment 2: released", "1/3"]).await;
    stage.let_ready(Pod::is_released).await;
    browser.until("the last one has no room", &["segment 2: ready", "segment 3: held NoRoom"]).await;
    let said = browser.script("return document.getElementById('say').textContent").await;
    assert!(said.as_str().unwrap().starts_with("NoRoom: "), "{said}");
    assert!(browser.script("return document.title").await.as_str().unwrap().contains("2/3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_a_bar_with_its_band() {
    let bounds = json!({ "maxSkew": "25%", "maxUnavailable": 2 });
    let duo = Duo::serve("page-rollout", 16, 8, bounds, &[]).await.ready().await;
    // New pods run and are not ready: the rollout stops where the band ends.
    duo.edit_both_held_back("registry.invalid/x:2");
    let browser = Browser::open().await;
    browser.look(DESK, "light").await;
    browser.show(&url(&duo.rolegate, "#/page-rollout/llm")).await;
    browser.until("both roles", &["Rollout", "of 16 updated", "of 8 updated", "differ by 25 %"]).await;
    assert_eq!(browser.script("return document.querySelectorAll('.band').length").await, 2);
    is_accessible(&browser).await;
    picture(&browser, "status-page-rollout.png").await;
}

/// The rollout fails, and nothing has moved, after the same time: it went back, and did not stall.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_went_back_is_told_as_status_explain_and_the_event_tell_it() {
    let bounds = json!({ "onFailure": "Rollback", "failAfter": "5s" });
    let flags = [("allow", "recovery"), ("settle", "2s"), ("progress-deadline", "5s")];
    let duo = Duo::serve("page-back-again", 4, 2, bounds, &flags).await.ready().await;
    duo.edit_held_back("prefill", "registry.invalid/broken:2");
    duo.statuses.until("it is back", |status| status.ready().starts_with("True RolledBack")).await;
    let why = r#""roll" was sent back: prefill-3 did not get ready within 5s"#;
    let browser = Browser::open().await;
    browser.look(DESK, "light").await;
    browser.show(&url(&duo.rolegate, "")).await;
    browser.until("the list", &["page-back-again/llm", "RolledBack", why]).await;
    browser.show(&url(&duo.rolegate, "#/page-back-again/llm")).await;
    browser.until("the group", &[why, "0 of 4 updated", "RolledBack"]).await;
    is_accessible(&browser).await;
    for command in [&["status", "llm"][..], &["explain", "group", "llm"]] {
        let said = duo.stage.said(command).await;
        assert!(said.contains(why), "{said}");
    }
    duo.stage.until_event("RolledBack", &["prefill-3 did not get ready within 5s"]).await;
    let stalled: Vec<_> = duo.events().await.into_iter().filter(|(reason, _)| reason == "RolloutStalled").collect();
    assert!(stalled.is_empty(), "{stalled:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_open_finds_its_way_back() {
    let stage = Stage::new("page-back").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "a-token-of-some-length").unwrap();
    let launch = stage.launch().flag("page-token-file", file.to_str().unwrap());
    let rolegate = launch.start().await;
    let address = rolegate.admin;
    stage.create_group(&Group::three_segments()).await;
    let browser = Browser::open().await;
    browser.look(DESK, "light").await;
    browser.show(&url(&rolegate, "")).await;
    browser.until("it asks", &["Token", "asks for a token"]).await;
    browser.press("wrong\u{e007}").await;
    browser.until("it is another", &["This is not the token."]).await;
    is_accessible(&browser).await;
    browser.press("a-token-of-some-length\u{e007}").await;
    browser.until("the list", &["page-back/llm", "live"]).await;
    // A server that hangs ends no connection.
    let follow = "window.broken = ''; import('/page/stream.js').then(({ follow }) => follow('groups', { patience: 300, token: \
                  sessionStorage.getItem('token'), signal: new AbortController().signal, show() {}, connected() {}, refused() {}, \
                  broken: (why) => (window.broken = why) }))";
    browser.script(follow).await;
    let broken = async || browser.script("return window.broken").await.as_str().unwrap_or_default().to_owned();
    until_found("silence", broken, |why| why == "it says nothing for 0.3 s").await;
    rolegate.kill().await;
    browser.until("it says so", &["not connected", "as of", "page-back/llm"]).await;
    let is_stale = "return document.getElementById('main').classList.contains('stale')";
    assert_eq!(browser.script(is_stale).await, true);
    let again = launch.flag("admin-listen", &address.to_string()).start().await;
    browser.until("it is back", &["live", "page-back/llm"]).await;
    assert_eq!(browser.script(is_stale).await, false);
    browser.script("location.hash = 'main'; location.reload()").await;
    browser.until("a place in the page, at first", &["live", "page-back/llm"]).await;
    // What others write is text, whatever it looks like.
    browser.show(&url(&again, "#/page-back/%3Cimg%20src=x%20onerror=document.title=1%3E")).await;
    browser.until("nobody", &["Neither this group nor a pod", "<img src=x"]).await;
    assert_eq!(browser.script("return document.querySelectorAll('img').length").await, 0);
}
