//! Whose input it is, and what every input is taken in with.

use std::path::PathBuf;
use std::sync::Arc;

use super::error::IngestError;
use super::ledger::{FeedKind, Ledger};
use crate::board::Boards;
use crate::clock::Clock;
use crate::keys::{AdmittedFeeder, Feeders};
use crate::model::World;
use crate::writer::{Sender, Writer, WriterHandle};

/// The prefix of the account names of feeders with a token.
const TOKEN_PREFIX: &str = "token/";

/// What every input is taken in with. While one exists, the writer keeps running.
#[derive(Clone, Debug)]
pub struct IngestContext {
    pub writer: WriterHandle,
    pub boards: Arc<Boards>,
    pub ledger: Arc<Ledger>,
    pub feeders: Arc<Feeders>,
    pub clock: Clock,
    /// Where strict inputs are spooled.
    pub data: PathBuf,
}

impl IngestContext {
    /// Whether a token that is in force here cannot have been revoked without this process knowing.
    pub(super) fn knows_revocations(&self) -> bool {
        self.boards.condition().may_serve(|| self.clock.mono_ms())
    }
}

/// Whose input it is.
#[derive(Clone, Debug)]
pub struct Feed {
    name: Arc<str>,
    kind: FeedKind,
    /// A remote feeder may send for as long as its token is in force.
    token: Option<(Arc<Feeders>, AdmittedFeeder)>,
}

impl Feed {
    /// Anyone who may use the admin interface.
    pub fn push() -> Self {
        Feed { name: "push".into(), kind: FeedKind::Push, token: None }
    }

    pub(super) fn drop_directory() -> Self {
        Feed { name: "drop".into(), kind: FeedKind::Drop, token: None }
    }

    pub(super) fn token(feeders: Arc<Feeders>, admitted: AdmittedFeeder) -> Self {
        let name = format!("{TOKEN_PREFIX}{}", admitted.feeder.name).into();
        Feed { name, kind: FeedKind::Token, token: Some((feeders, admitted)) }
    }

    pub(super) fn poll(name: &str) -> Self {
        Feed { name: name.into(), kind: FeedKind::TheOddsApi, token: None }
    }

    pub(super) fn simulator(world: World) -> Self {
        let name = match world {
            World::Sandbox => "simulator",
            World::Live => "simulator-live",
        };
        Feed { name: name.into(), kind: FeedKind::Simulator, token: None }
    }

    /// Opens the accounts of the feeders that have used any of their quotas, as the file has it.
    pub fn open_accounts(writer: &Writer, ledger: &Ledger) {
        for world in World::ALL {
            for (name, used) in writer.feeder_uses(world) {
                let token = name.strip_prefix(TOKEN_PREFIX);
                let kind = if token.is_some() { FeedKind::Token } else { FeedKind::Drop };
                // A token that was issued again may be for the other world now: there it has another quota.
                let is_moved = token.and_then(|name| writer.feeders().get(name)).is_some_and(|it| it.world != world);
                if !is_moved {
                    ledger.used((name, kind, world), 0, Some((used, writer.feeder_quota())));
                }
            }
        }
    }

    pub(super) fn kind(&self) -> FeedKind {
        self.kind
    }

    /// The account that its input is counted in.
    pub(super) fn account(&self, world: World) -> (&str, FeedKind, World) {
        (&self.name, self.kind, world)
    }

    /// The sender whose quota its input counts against; `None` for a feed without a quota.
    pub(super) fn sender(&self) -> Option<Sender> {
        let removes_any = match self.kind {
            FeedKind::Token => false,
            FeedKind::Drop => true,
            FeedKind::Simulator | FeedKind::Push | FeedKind::TheOddsApi => return None,
        };
        Some(Sender { name: Arc::clone(&self.name), removes_any })
    }

    /// Fails once the token that a remote feeder was admitted with is revoked or rotated out, or may be without this process
    /// knowing.
    pub(super) fn check(&self, context: &IngestContext) -> Result<(), IngestError> {
        let Some((feeders, admitted)) = &self.token else { return Ok(()) };
        if !feeders.is_in_force(admitted, context.clock.now().timestamp()) {
            return Err(IngestError::TokenRevoked);
        }
        if context.knows_revocations() { Ok(()) } else { Err(IngestError::TokenUnconfirmed) }
    }
}
