//! Who may use the console: links that open once, and the sessions that they become.
//!
//! Both are bounded in number, and only a hash of each is kept. Links end with the server; sessions are stored in a file
//! and survive a restart. A session acts in the name of the user who requested its link.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use super::session_file::{SessionFile, StoredSession};
use crate::admin::DataDir;
use crate::clock::{Clock, Moment};
use crate::model::Timestamp;
use crate::model::text::hex;

/// How long a link can be opened.
pub(super) const LINK_S: u32 = 5 * 60;
/// How long a session lasts.
pub(super) const SESSION_S: u32 = 12 * 3600;
/// As many links as may wait to be opened; the oldest is dropped.
const LINKS_MAX: usize = 16;
/// As many sessions as there may be; the oldest ends.
pub(super) const SESSIONS_MAX: usize = 32;
/// As many wrong links as are looked at in a minute. A right one always opens: it cannot be guessed, and a page that
/// sends wrong ones must not lock the operator out.
const WRONG_MAX: u32 = 10;
const WRONG_WINDOW_MS: u64 = 60_000;
const TOKEN_BYTES: usize = 32;

pub(super) type TokenHash = [u8; 32];

/// No link or session can be made without random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random bytes ({0}): try again")]
pub struct NoRandom(getrandom::Error);

/// A link that does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkRefused {
    /// Never made, opened before, or too old.
    Wrong,
    /// There were too many wrong ones of late.
    TooMany { retry_after_s: u64 },
}

/// What a session may do, and until when.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// As the audit log has it.
    pub who: Arc<str>,
    /// What a page of ours sends along with each command, and no other page can know.
    pub csrf: Arc<str>,
    pub until: Timestamp,
}

impl Session {
    fn of(stored: &StoredSession, token: &str) -> Self {
        let until = stored.from.plus_seconds(SESSION_S);
        Session { who: Arc::clone(&stored.who), csrf: csrf_of(token).into(), until }
    }
}

#[derive(Debug)]
struct Link {
    hash: TokenHash,
    who: Arc<str>,
    until_ms: u64,
}

#[derive(Debug)]
struct ActiveSession {
    stored: StoredSession,
    /// On the monotonic clock: setting the wall clock lengthens nothing.
    until_ms: u64,
}

impl ActiveSession {
    fn of(stored: StoredSession, now: Moment) -> Self {
        let left_ms = stored.from.plus_seconds(SESSION_S).unix_ms().saturating_sub(now.unix_ms);
        ActiveSession { stored, until_ms: now.mono_ms + u64::try_from(left_ms).unwrap_or(0) }
    }
}

#[derive(Debug, Default)]
struct SessionState {
    links: Vec<Link>,
    sessions: Vec<ActiveSession>,
    wrong: u32,
    wrong_since_ms: u64,
}

/// Hands out links and knows the sessions.
#[derive(Debug)]
pub struct ConsoleSessions {
    /// `http://127.0.0.1:8081`
    base: Box<str>,
    clock: Clock,
    state: Mutex<SessionState>,
    file: SessionFile,
    /// Held while the file is written, so that an older list never replaces a newer one.
    storing: Mutex<()>,
}

/// The file does not have the sessions as they are.
#[derive(Debug, thiserror::Error)]
pub(in crate::admin) enum NotStored {
    #[error("the console's sessions cannot be stored ({0}): they end with the server")]
    Forgotten(io::Error),
    #[error(
        "the file of console sessions can be neither written nor deleted ({error}): delete {path}, or sessions that \
         have ended work again after a restart",
        path = path.display()
    )]
    Outdated { path: PathBuf, error: io::Error },
}

/// A link as it is shown, once.
pub struct NewLink {
    pub url: String,
    pub until: Timestamp,
}

impl fmt::Debug for NewLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewLink(…, until {})", self.until)
    }
}

impl ConsoleSessions {
    /// Loads the stored sessions. If their file cannot be used, nobody is signed in. `base` is the console's address as a
    /// browser writes it.
    pub fn open(base: &str, clock: Clock, data: &DataDir) -> Self {
        let (file, now) = (SessionFile::of(data), clock.now());
        let stored = file.load(now.timestamp()).unwrap_or_else(|error| {
            let path = file.path().display();
            tracing::warn!(%path, %error, "ignored the stored console sessions: nobody is signed in");
            Vec::new()
        });
        let sessions = stored.into_iter().map(|stored| ActiveSession::of(stored, now)).collect();
        let state = Mutex::new(SessionState { sessions, ..SessionState::default() });
        ConsoleSessions { base: base.into(), clock, state, file, storing: Mutex::default() }
    }

    /// The console's address.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn is_secure(&self) -> bool {
        self.base.starts_with("https://")
    }

    /// A link that opens the console once, in the name of `who`.
    pub fn link(&self, who: &str) -> Result<NewLink, NoRandom> {
        let token = random()?;
        let now = self.clock.now();
        let link = Link { hash: hash(&token), who: format!("console ({who})").into(), until_ms: after(now, LINK_S) };
        let mut state = self.lock();
        state.forget_old(now);
        if state.links.len() == LINKS_MAX {
            state.links.remove(0);
        }
        state.links.push(link);
        Ok(NewLink { url: format!("{}/sign-in/{token}", self.base), until: now.timestamp().plus_seconds(LINK_S) })
    }

    /// Opens a link, which it can be once: the new session and its token. The session is stored with
    /// [`ConsoleSessions::store`].
    pub(super) fn sign_in(&self, token: &str) -> Result<(Session, String), SignInError> {
        let now = self.clock.now();
        let new_token = random()?;
        let mut state = self.lock();
        state.forget_old(now);
        let sent = hash(token);
        let Some(at) = state.links.iter().position(|link| link.hash == sent) else {
            return Err(state.count_wrong(now).into());
        };
        let who = state.links.remove(at).who;
        if state.sessions.len() == SESSIONS_MAX {
            state.sessions.remove(0);
        }
        let stored = StoredSession { hash: hash(&new_token), who, from: now.timestamp() };
        let session = Session::of(&stored, &new_token);
        state.sessions.push(ActiveSession { stored, until_ms: after(now, SESSION_S) });
        Ok((session, new_token))
    }

    /// The session of a token, while it lasts.
    pub(super) fn session(&self, token: &str) -> Option<Session> {
        let now = self.clock.now();
        let mut state = self.lock();
        state.forget_old(now);
        let sent = hash(token);
        state.sessions.iter().find(|active| active.stored.hash == sent).map(|active| Session::of(&active.stored, token))
    }

    /// Ends one session. [`ConsoleSessions::store`] keeps it ended after a restart.
    pub(super) fn sign_out(&self, token: &str) {
        let sent = hash(token);
        self.lock().sessions.retain(|active| active.stored.hash != sent);
    }

    /// Ends every session and every link; how many sessions there were. `store` keeps them ended after
    /// a restart.
    pub fn sign_out_all(&self) -> usize {
        let now = self.clock.now();
        let mut state = self.lock();
        state.forget_old(now);
        state.links.clear();
        std::mem::take(&mut state.sessions).len()
    }

    /// Brings the file in line with the sessions in force. If it cannot be written, it is deleted: a session that has
    /// ended must not come back.
    pub(in crate::admin) async fn store(self: &Arc<Self>) -> Result<(), NotStored> {
        let sessions = Arc::clone(self);
        let stored = tokio::task::spawn_blocking(move || sessions.write_file()).await;
        stored.unwrap_or_else(|error| Err(self.outdated(io::Error::other(error))))
    }

    fn write_file(&self) -> Result<(), NotStored> {
        let _turn = self.storing.lock().unwrap_or_else(PoisonError::into_inner);
        let sessions: Vec<StoredSession> = self.lock().sessions.iter().map(|active| active.stored.clone()).collect();
        let Err(error) = self.file.save(&sessions) else { return Ok(()) };
        match self.file.remove() {
            Ok(()) => Err(NotStored::Forgotten(error)),
            Err(error) => Err(self.outdated(error)),
        }
    }

    fn outdated(&self, error: io::Error) -> NotStored {
        NotStored::Outdated { path: self.file.path().to_owned(), error }
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a link became no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum SignInError {
    #[error("the link is refused")]
    Refused(LinkRefused),
    #[error(transparent)]
    NoRandom(#[from] NoRandom),
}

impl From<LinkRefused> for SignInError {
    fn from(refused: LinkRefused) -> Self {
        SignInError::Refused(refused)
    }
}

impl SessionState {
    fn forget_old(&mut self, now: Moment) {
        self.links.retain(|link| now.mono_ms < link.until_ms);
        self.sessions.retain(|active| now.mono_ms < active.until_ms);
    }

    fn count_wrong(&mut self, now: Moment) -> LinkRefused {
        if self.wrong == 0 || now.mono_ms - self.wrong_since_ms >= WRONG_WINDOW_MS {
            (self.wrong, self.wrong_since_ms) = (0, now.mono_ms);
        }
        if self.wrong == WRONG_MAX {
            let left_ms = WRONG_WINDOW_MS - (now.mono_ms - self.wrong_since_ms);
            return LinkRefused::TooMany { retry_after_s: left_ms.div_ceil(1000) };
        }
        self.wrong += 1;
        LinkRefused::Wrong
    }
}

fn after(now: Moment, seconds: u32) -> u64 {
    now.mono_ms + u64::from(seconds) * 1000
}

fn hash(token: &str) -> TokenHash {
    Sha256::digest(token).into()
}

/// Follows from the token, so that it need not be stored. The stored hash of the token does not reveal it.
fn csrf_of(token: &str) -> String {
    hex(&Sha256::new().chain_update("oddsbox console csrf ").chain_update(token).finalize())
}

/// A random text that cannot be guessed.
fn random() -> Result<String, NoRandom> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(NoRandom)?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BASE: &str = "http://127.0.0.1:8081";

    fn sessions() -> (ConsoleSessions, Clock) {
        let clock = Clock::manual(1_794_699_540_000);
        (ConsoleSessions::open(BASE, clock.clone(), &DataDir::new("/nowhere")), clock)
    }

    fn token_of(link: &NewLink) -> &str {
        link.url.strip_prefix("http://127.0.0.1:8081/sign-in/").unwrap()
    }

    fn refused(sessions: &ConsoleSessions, token: &str) -> LinkRefused {
        match sessions.sign_in(token) {
            Err(SignInError::Refused(refused)) => refused,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_link_opens_once_and_only_for_five_minutes() {
        let (sessions, clock) = sessions();
        let link = sessions.link("ada").unwrap();
        let (session, token) = sessions.sign_in(token_of(&link)).unwrap();
        assert_eq!(&*session.who, "console (ada)");
        assert_eq!(refused(&sessions, token_of(&link)), LinkRefused::Wrong, "it was opened before");
        assert_eq!(sessions.session(&token).unwrap().csrf, session.csrf);

        let late = sessions.link("ada").unwrap();
        clock.advance(Duration::from_secs(u64::from(LINK_S)));
        assert_eq!(refused(&sessions, token_of(&late)), LinkRefused::Wrong, "it is too old");
    }

    #[test]
    fn a_session_ends_after_twelve_hours_or_when_it_is_ended() {
        let (sessions, clock) = sessions();
        let open = || sessions.sign_in(token_of(&sessions.link("ada").unwrap())).unwrap().1;
        let (first, second, third) = (open(), open(), open());
        sessions.sign_out(&first);
        assert!(sessions.session(&first).is_none() && sessions.session(&second).is_some());
        assert_eq!(sessions.sign_out_all(), 2);
        assert!(sessions.session(&second).is_none() && sessions.session(&third).is_none());

        let last = open();
        clock.advance(Duration::from_secs(u64::from(SESSION_S) - 1));
        assert!(sessions.session(&last).is_some());
        // A wall clock that is set back lengthens nothing.
        clock.set_unix_ms(0);
        clock.advance(Duration::from_secs(1));
        assert!(sessions.session(&last).is_none());
    }

    #[test]
    fn links_and_sessions_are_bounded_and_the_oldest_give_way() {
        let (sessions, _) = sessions();
        let links: Vec<NewLink> = (0..=LINKS_MAX).map(|_| sessions.link("ada").unwrap()).collect();
        assert_eq!(refused(&sessions, token_of(&links[0])), LinkRefused::Wrong);
        let first = sessions.sign_in(token_of(&links[1])).unwrap().1;
        let open = || sessions.sign_in(token_of(&sessions.link("ada").unwrap())).unwrap().1;
        let others: Vec<String> = (0..SESSIONS_MAX).map(|_| open()).collect();
        assert!(sessions.session(&first).is_none());
        assert!(others.iter().all(|token| sessions.session(token).is_some()));
    }

    #[test]
    fn wrong_links_are_slowed_down_and_right_ones_are_not() {
        let (sessions, clock) = sessions();
        for _ in 0..WRONG_MAX {
            assert_eq!(refused(&sessions, "guess"), LinkRefused::Wrong);
        }
        clock.advance(Duration::from_secs(20));
        assert_eq!(refused(&sessions, "guess"), LinkRefused::TooMany { retry_after_s: 40 });
        assert!(sessions.sign_in(token_of(&sessions.link("ada").unwrap())).is_ok());
        clock.advance(Duration::from_secs(40));
        assert_eq!(refused(&sessions, "guess"), LinkRefused::Wrong);
    }

    #[test]
    fn secrets_are_in_no_debug() {
        let (sessions, _) = sessions();
        let link = sessions.link("ada").unwrap();
        let (session, token) = sessions.sign_in(token_of(&link)).unwrap();
        let shown = format!("{link:?} {sessions:?}");
        for secret in [token_of(&link), &token, &session.csrf] {
            assert!(!shown.contains(secret));
        }
    }
}
