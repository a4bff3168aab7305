//! The routes of the console, and what must hold before each is answered.
//!
//! 1. The `Host` is one of ours; else nothing is answered.
//! 2. `/sign-in/…` turns a link into a session and leads to an address without it. The files of the page are open: they
//!    hold nothing.
//! 3. Everything under `/api` needs the session's cookie, and a browser must not say that another page asks.
//! 4. What changes something, or may, is a command: it needs the page's own origin and its token as well.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
use tokio::sync::Semaphore;
use tracing::Level;

use super::files::{Files, REFUSED};
use super::given::Given;
use super::sessions::{ConsoleSessions, LinkRefused, SESSION_S, Session, SignInError};
use super::views::ViewContext;
use super::{backup, guard, live, views};
use crate::admin::protocol::FailureBody;
use crate::admin::respond::{read_command, status_of};
use crate::admin::{Command, Context, Failure, execute};
use crate::board::{Body, Encoding};
use crate::http::{self, ResponseBody, negotiate};
use crate::log::{LineKind, limited};
use crate::metrics::Traffic;
use crate::model::{Market, Region, World};

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
);
const NEXT: HeaderName = HeaderName::from_static("x-next-after");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const REVALIDATED: HeaderValue = HeaderValue::from_static("private, no-cache");

/// Views that are computed or read from the log at a time.
const SLOW_VIEWS_MAX: usize = 2;
/// How long such a view waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

type ConsoleReply = Response<ResponseBody>;

/// What every request is answered from.
#[derive(Debug)]
pub(super) struct Console {
    view: Arc<ViewContext>,
    sessions: Arc<ConsoleSessions>,
    files: Files,
    /// Slow views at a time.
    turns: Arc<Semaphore>,
    /// The name that the operator gave it.
    host: Option<String>,
    /// Cookies know no ports: two consoles of one machine must not share a name.
    cookie: String,
    traffic: Arc<Traffic>,
}

impl Console {
    pub(super) fn new(
        view: ViewContext,
        sessions: Arc<ConsoleSessions>,
        files: Files,
        host: Option<String>,
        port: u16,
    ) -> Self {
        Console {
            view: Arc::new(view),
            sessions,
            files,
            turns: Arc::new(Semaphore::new(SLOW_VIEWS_MAX)),
            host,
            cookie: format!("oddsbox_console_{port}"),
            traffic: Arc::new(Traffic::new(&["console"], &[])),
        }
    }

    fn context(&self) -> &Context {
        &self.view.context
    }

    fn scheme(&self) -> &'static str {
        if self.sessions.is_secure() { "https" } else { "http" }
    }

    fn token<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        guard::cookie(headers, &self.cookie)
    }

    fn cookie_header(&self, token: &str, max_age_s: u32) -> HeaderValue {
        let secure = if self.sessions.is_secure() { "; Secure" } else { "" };
        let name = &self.cookie;
        let cookie = format!("{name}={token}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::from_str(&cookie).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

impl http::Respond for Console {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: &'a http::Peer) -> http::ResponseFuture<'a> {
        let client = peer.client(request.headers());
        Box::pin(respond(request, client, self))
    }

    fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}

async fn respond(request: Request<Incoming>, client: IpAddr, console: &Console) -> ConsoleReply {
    let mut reply = answer(request, client, console).await;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
    reply
}

async fn answer(request: Request<Incoming>, client: IpAddr, console: &Console) -> ConsoleReply {
    let Some(host) = guard::host(request.uri(), request.headers(), console.host.as_deref()).map(str::to_owned) else {
        let message = "the console answers to its address, to localhost and to the name in `[console] host`";
        return refuse(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message);
    };
    let path = request.uri().path().to_owned();
    if let Some(token) = path.strip_prefix("/sign-in/") {
        return match *request.method() {
            Method::GET => sign_in(token, client, console).await,
            _ => wrong_method("GET"),
        };
    }
    if let Some(file) = console.files.get(&path) {
        return reading(&request, || kept(request.headers(), &file.body, file.media_type));
    }
    if !path.starts_with("/api/") {
        return refuse(StatusCode::NOT_FOUND, "not_found", "there is nothing here");
    }
    if guard::is_from_elsewhere(request.headers()) {
        return refuse(StatusCode::FORBIDDEN, "forbidden", "this is for the console's own page");
    }
    let Some(session) = console.token(request.headers()).and_then(|token| console.sessions.session(token)) else {
        return refuse(StatusCode::UNAUTHORIZED, "signed_out", "run `oddsbox console` for a link that signs you in");
    };
    match path.as_str() {
        "/api/session" => reading(&request, || described(console, &session)),
        "/api/command" | "/api/sign-out" => change(request, &path, &host, client, console, &session).await,
        "/api/position" => {
            let reply = position(&request, console).await;
            reading(&request, || reply)
        }
        _ if views::is_slow(&path, request.uri().query()) => {
            let reply = viewed_slowly(&request, console).await;
            reading(&request, || reply)
        }
        _ => reading(&request, || viewed(&request, console)),
    }
}

/// Turns a link into a session.
async fn sign_in(token: &str, client: IpAddr, console: &Console) -> ConsoleReply {
    let (session, token) = match console.sessions.sign_in(token) {
        Ok(opened) => opened,
        Err(SignInError::NoRandom(error)) => {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string());
        }
        Err(SignInError::Refused(refused)) => {
            if matches!(refused, LinkRefused::Wrong) {
                limited!(LineKind::Console, Level::WARN, %client, "rejected console link: unknown, used or expired");
            }
            return not_opened(refused);
        }
    };
    // Neither a session that cannot be stored nor an audit log that cannot be written may keep the operator out.
    if let Err(error) = console.sessions.store().await {
        tracing::warn!(%error, who = %session.who, "failed to store a console session");
    }
    let audited = console.context().writer.audit(&session.who, "sign in", "console", String::new()).await;
    if let Err(error) = audited {
        tracing::warn!(%error, who = %session.who, "failed to write a console sign-in to the audit log");
    }
    let mut reply = Response::new(ResponseBody::default());
    *reply.status_mut() = StatusCode::SEE_OTHER;
    reply.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
    reply.headers_mut().insert(SET_COOKIE, console.cookie_header(&token, SESSION_S));
    reply
}

fn not_opened(refused: LinkRefused) -> ConsoleReply {
    let mut reply = Response::new(ResponseBody::from(REFUSED));
    *reply.status_mut() = StatusCode::FORBIDDEN;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let LinkRefused::TooMany { retry_after_s } = refused {
        *reply.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        reply.headers_mut().insert(RETRY_AFTER, retry_after_s.into());
    }
    reply
}

/// A command, or the end of the session.
async fn change(
    request: Request<Incoming>,
    path: &str,
    host: &str,
    client: IpAddr,
    console: &Console,
    session: &Session,
) -> ConsoleReply {
    if request.method() != Method::POST {
        return wrong_method("POST");
    }
    let headers = request.headers();
    if !guard::is_same_origin(headers, console.scheme(), host) || !guard::has_token(headers, &session.csrf) {
        let who = &*session.who;
        limited!(LineKind::Console, Level::WARN, who, %client, "rejected console command: not sent by its own page");
        return refuse(StatusCode::FORBIDDEN, "forbidden", "this is for the console's own page: load it again");
    }
    if path == "/api/sign-out" {
        if let Some(token) = console.token(headers) {
            console.sessions.sign_out(token);
            if let Err(error) = console.sessions.store().await {
                tracing::warn!(%error, who = %session.who, "failed to store the end of a console session");
            }
        }
        let mut reply = json_reply(StatusCode::OK, &json!({ "signed_out": true }));
        reply.headers_mut().insert(SET_COOKIE, console.cookie_header("", 0));
        return reply;
    }
    let command = match read_command(request.into_body()).await {
        Ok(Command::Backup(order)) => match backup::into_directory(&order, &console.context().data) {
            Ok(order) => Command::Backup(order),
            Err(error) => return failed(error),
        },
        Ok(command) if is_for_console(&command) => command,
        Ok(_) => {
            let message = "this command is for the command line only";
            return refuse(StatusCode::FORBIDDEN, "forbidden", message);
        }
        Err(error) => return failed(error),
    };
    match execute(command, console.context(), &session.who).await {
        Ok(answer) => json_reply(StatusCode::OK, &answer),
        Err(error) => failed(error),
    }
}

/// The commands that the page needs. A stolen session can do no more: no new links, and no files but backups in their
/// directory.
fn is_for_console(command: &Command) -> bool {
    matches!(
        command,
        Command::KeysIssue(_)
            | Command::KeysList
            | Command::KeysShow { .. }
            | Command::KeysRotate { .. }
            | Command::KeysRotateUndo { .. }
            | Command::KeysRevoke { .. }
            | Command::KeysSet(_)
            | Command::Audit { .. }
            | Command::AuditTail { .. }
            | Command::Status
            | Command::Feeds { .. }
            | Command::MaintenanceOn { .. }
            | Command::MaintenanceOff
            | Command::FeedsToken { .. }
            | Command::FeedsTokenRevoke { .. }
            | Command::Progress
            | Command::Cluster
    )
}

fn described(console: &Console, session: &Session) -> ConsoleReply {
    let boards = &console.context().boards;
    let worlds = World::ALL.map(|world| boards.load(world));
    let listed = |id| worlds.iter().any(|board| board.lists(id));
    let sports = boards.catalogue().sports().filter(|(id, _)| listed(*id));
    let sports: Vec<_> = sports.map(|(_, sport)| json!({ "key": sport.key, "title": sport.title })).collect();
    let described = json!({
        "who": &*session.who,
        "csrf": &*session.csrf,
        "until": session.until.to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "groups": boards.catalogue().groups(),
        "sports": sports,
        "markets": Market::FEATURED.map(Market::key),
        "regions": Region::ALL.map(Region::key),
    });
    json_reply(StatusCode::OK, &described)
}

fn viewed(request: &Request<Incoming>, console: &Console) -> ConsoleReply {
    let uri = request.uri();
    shown(request, views::view(uri.path(), uri.query(), &console.view))
}

/// A view that reads the log or computes: on a thread of its own, a few at a time. A page that leaves meanwhile still takes
/// its turn until the view is done.
async fn viewed_slowly(request: &Request<Incoming>, console: &Console) -> ConsoleReply {
    let turn = tokio::time::timeout(PATIENCE, Arc::clone(&console.turns).acquire_owned()).await;
    let Ok(Ok(turn)) = turn else {
        return refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "the server is busy with other views: try again",
        );
    };
    let (uri, view) = (request.uri().clone(), Arc::clone(&console.view));
    let encoding = negotiate::encoding(request.headers().get_all(ACCEPT_ENCODING).iter());
    let done = tokio::task::spawn_blocking(move || {
        let _held = turn;
        let result = views::view(uri.path(), uri.query(), &view);
        if let Some(Ok(body)) = &result
            && body.is_worth_compressing()
        {
            // Compressed here, and found so when it is sent.
            body.bytes(encoding);
        }
        result
    });
    let Ok(result) = done.await else {
        let message = "this could not be computed: see the server's log";
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message);
    };
    shown(request, result)
}

fn shown(request: &Request<Incoming>, result: Option<views::ViewResult>) -> ConsoleReply {
    match result {
        None => refuse(StatusCode::NOT_FOUND, "not_found", "there is nothing here"),
        Some(Err(error)) => failed(error),
        Some(Ok(body)) => kept(request.headers(), &body, "application/json"),
    }
}

/// Waits for the next publication.
async fn position(request: &Request<Incoming>, console: &Console) -> ConsoleReply {
    match live::position(Given(request.uri().query()), console.context()).await {
        Ok(position) => json_reply(StatusCode::OK, &json!({ "position": position })),
        Err(error) => failed(error),
    }
}

/// A body with its validator, or 304 for a browser that has it.
fn kept(asked: &HeaderMap, body: &Body, media_type: &'static str) -> ConsoleReply {
    let encoding = if body.is_worth_compressing() {
        negotiate::encoding(asked.get_all(ACCEPT_ENCODING).iter())
    } else {
        Encoding::Identity
    };
    let etag = http::etag_of(body, encoding);
    let is_current = negotiate::has_current(asked.get_all(IF_NONE_MATCH).iter(), etag.as_bytes());
    let mut reply = Response::new(if is_current {
        ResponseBody::default()
    } else {
        ResponseBody::from(body.bytes(encoding).clone())
    });
    let headers = reply.headers_mut();
    headers.insert(ETAG, etag);
    headers.insert(CACHE_CONTROL, REVALIDATED);
    headers.insert(VARY, HeaderValue::from_static("accept-encoding, cookie"));
    if let Some(next) = body.next().and_then(|next| HeaderValue::from_str(&next.to_text()).ok()) {
        headers.insert(NEXT, next);
    }
    if is_current {
        *reply.status_mut() = StatusCode::NOT_MODIFIED;
        return reply;
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    match encoding {
        Encoding::Identity => None,
        Encoding::Gzip => headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip")),
        Encoding::Zstd => headers.insert(CONTENT_ENCODING, HeaderValue::from_static("zstd")),
    };
    reply
}

/// Answers GET and HEAD.
fn reading(request: &Request<Incoming>, answer: impl FnOnce() -> ConsoleReply) -> ConsoleReply {
    match *request.method() {
        Method::GET => answer(),
        Method::HEAD => {
            let (mut head, body) = answer().into_parts();
            let length = hyper::body::Body::size_hint(&body).exact().unwrap_or(0);
            head.headers.insert(CONTENT_LENGTH, length.into());
            Response::from_parts(head, ResponseBody::default())
        }
        _ => wrong_method("GET, HEAD"),
    }
}

fn wrong_method(allowed: &'static str) -> ConsoleReply {
    let mut reply = refuse(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &format!("this takes {allowed}"));
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

fn refuse(status: StatusCode, code: &str, message: &str) -> ConsoleReply {
    json_reply(status, &json!({ "error": { "code": code, "message": message } }))
}

/// A command that failed, with the message of the command line.
fn failed(error: Failure) -> ConsoleReply {
    json_reply(status_of(&error), &FailureBody { error, taken_lines: None })
}

fn json_reply(status: StatusCode, value: &impl serde::Serialize) -> ConsoleReply {
    let mut reply = Response::new(ResponseBody::from(serde_json::to_vec(value).unwrap_or_default()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, JSON);
    reply
}
