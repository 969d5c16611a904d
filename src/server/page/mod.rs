//! The status page: the output of `rolegate status`, drawn again whenever it changes. Read-only, on the admin port of every
//! replica, leader or not.
//!
//! `access` who may view it → `feed` pictures, computed once for all viewers of a subject

mod access;
mod feed;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

pub use access::{Access, TokenError};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use feed::Subject;
pub use feed::{Feeds, Source};
use futures::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::model::GroupKey;

/// Largest number of concurrent viewers; further ones are told to come back.
const MOST_VIEWERS: usize = 64;
/// Interval of comment lines that reveal a broken connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, type and text of each file.
const FILES: [(&str, &str, &str); 9] = [
    ("/page/", "text/html; charset=utf-8", include_str!("assets/index.html")),
    ("/page/page.css", "text/css; charset=utf-8", include_str!("assets/page.css")),
    ("/page/cells.js", SCRIPT, include_str!("assets/cells.js")),
    ("/page/dom.js", SCRIPT, include_str!("assets/dom.js")),
    ("/page/group.js", SCRIPT, include_str!("assets/group.js")),
    ("/page/groups.js", SCRIPT, include_str!("assets/groups.js")),
    ("/page/page.js", SCRIPT, include_str!("assets/page.js")),
    ("/page/room.js", SCRIPT, include_str!("assets/room.js")),
    ("/page/stream.js", SCRIPT, include_str!("assets/stream.js")),
];

/// Allows only own files and streams, no embedding, no caching.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

#[derive(Clone)]
struct Page {
    feeds: Arc<Feeds>,
    viewers: Arc<Semaphore>,
    stop: CancellationToken,
}

/// Returns the routes `/page/`, its files, and its two streams, of all groups and of one, which end with `stop`.
pub fn router(feeds: Feeds, access: Access, stop: CancellationToken) -> Router {
    let page = Page { feeds: Arc::new(feeds), viewers: Arc::new(Semaphore::new(MOST_VIEWERS)), stop };
    let streams = Router::new()
        .route("/page/groups", get(groups))
        .route("/page/groups/{namespace}/{name}", get(group))
        .with_state(page)
        .layer(axum::middleware::from_fn_with_state(Arc::new(access), access::check));
    let files = FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(path, get(async move || ([(header::CONTENT_TYPE, kind)], text)))
    });
    let home = async || Redirect::temporary("/page/");
    files.route("/", get(home)).route("/page", get(home)).merge(streams).layer(map_response(with_headers))
}

async fn with_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn groups(State(page): State<Page>) -> Response {
    page.stream(Subject::All)
}

async fn group(State(page): State<Page>, Path((namespace, name)): Path<(String, String)>) -> Response {
    page.stream(Subject::One(GroupKey::new(&namespace, &name)))
}

impl Page {
    fn stream(&self, subject: Subject) -> Response {
        let Ok(place) = Arc::clone(&self.viewers).try_acquire_owned() else {
            let text = format!("{MOST_VIEWERS} others are looking: try again later\n");
            return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "10")], text).into_response();
        };
        let pictures = pictures(Feeds::follow(&self.feeds, subject), place, self.stop.clone());
        Sse::new(pictures).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
    }
}

/// Streams each new picture, the first one at once.
fn pictures(
    feed: watch::Receiver<Arc<str>>,
    place: OwnedSemaphorePermit,
    stop: CancellationToken,
) -> impl Stream<Item = Result<Event, Infallible>> {
    futures::stream::unfold((feed, place, stop), async |(mut feed, place, stop)| {
        loop {
            stop.run_until_cancelled(feed.changed()).await?.ok()?;
            let picture = Arc::clone(&feed.borrow_and_update());
            // A feed begins with an empty picture.
            if !picture.is_empty() {
                return Some((Ok(Event::default().data(&*picture)), (feed, place, stop)));
            }
        }
    })
}
