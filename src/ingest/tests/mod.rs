//! Inputs on their way to a writer on a temporary directory.

mod any_lines;
mod rejected;

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::{Feed, IngestContext, IngestError, IngestErrorKind};
use crate::clock::Clock;
use crate::config::catalogue;
use crate::model::World;
use crate::store::{Store, StoreOptions};
use crate::writer::{self, Stopped, Writer, WriterOptions};

/// 2026-11-14T12:00:00Z.
const NOON_MS: i64 = 1_794_657_600_000;

pub(super) const EVENT: &str = r#"{"type":"event","sport":"mma","id":"e1","competition":"c","commence_time":"2026-11-15T00:00:00Z","home":"A","away":"B","status":"scheduled"}"#;
pub(super) const BOOK: &str = r#"{"type":"bookmaker","key":"acme","title":"Acme","regions":["us"]}"#;

pub(super) fn odds(event: &str, price: &str, second: u32) -> String {
    format!(
        r#"{{"type":"odds","sport":"mma","event":"{event}","bookmaker":"acme","market":"moneyline","last_update":"2026-11-14T11:59:{second:02}Z","format":"decimal","outcomes":[{{"name":"A","price":{price}}},{{"name":"B","price":2.0}}]}}"#
    )
}

/// A writer on an empty file, and what inputs are taken in with.
pub(crate) struct Fixture {
    pub(super) directory: TempDir,
    pub(crate) context: IngestContext,
    stopped: Stopped,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (catalogue, clock) = (Arc::new(catalogue::builtin()), Clock::manual(NOON_MS));
        let options = StoreOptions { cache_bytes: 1 << 20, wait_for_lock: Duration::ZERO, ..StoreOptions::default() };
        let store = Store::open(&directory.path().join("oddsbox.redb"), Arc::clone(&catalogue), options).unwrap();
        let opened = Writer::open(store, catalogue, clock.clone(), WriterOptions::default()).unwrap();
        let (boards, feeders) = (Arc::clone(opened.writer.boards()), Arc::clone(opened.writer.feeders()));
        let (writer, stopped) = writer::spawn(opened.writer).unwrap();
        let data = directory.path().to_owned();
        let context = IngestContext { writer, boards, ledger: Arc::default(), feeders, clock, data };
        Fixture { directory, context, stopped }
    }

    /// The live world as an export has it.
    pub(super) async fn export(&self) -> Vec<u8> {
        let mut source = crate::admin::export_world(crate::model::World::Live, &self.context.boards);
        let mut text = Vec::new();
        while let Some(piece) = source.recv().await {
            text.extend_from_slice(&piece.unwrap());
        }
        text
    }

    pub(super) async fn token(&self) -> Feed {
        let issued = self.context.writer.issue_token("scraper", World::Live, "test").await.unwrap();
        let now = self.context.clock.now().timestamp();
        let admitted = self.context.feeders.admit(Some(issued.token.expose()), now).unwrap();
        Feed::token(Arc::clone(&self.context.feeders), admitted)
    }

    pub(crate) async fn end(self) {
        drop(self.context);
        tokio::task::spawn_blocking(|| self.stopped.join()).await.unwrap().unwrap();
        drop(self.directory);
    }
}

/// It may have been revoked on another node without this one knowing.
#[tokio::test]
async fn token_is_refused_by_a_node_that_is_out_of_touch() {
    let fixture = Fixture::new();
    let feed = fixture.token().await;
    assert!(feed.check(&fixture.context).is_ok());
    fixture.context.boards.condition().serve_until(0);
    let refused = feed.check(&fixture.context).unwrap_err();
    assert!(matches!(refused, IngestError::TokenUnconfirmed), "{refused}");
    assert_eq!(refused.kind(), IngestErrorKind::Unavailable);
    assert!(Feed::push().check(&fixture.context).is_ok(), "the operator's own lines need no token");
    fixture.end().await;
}
