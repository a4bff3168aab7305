//! No engine, for a build without any: there is no value of it, so nothing here is ever called.

use std::future::Ready;
use std::time::Duration;

use super::{ClusterView, CopyRelay, Engine, EngineError, EngineOptions, Heartbeat, LogEntry, LogIdentity, NewEntry};
use crate::keys::{KeyId, KeyNeed, KeyShare, LimitSet, Recall, Unused};
use crate::model::EntryId;

/// See the module.
#[derive(Debug)]
pub enum NoEngine {}

impl NoEngine {
    pub fn connect(_: &EngineOptions) -> Result<Self, EngineError> {
        Err(EngineError::Refused("this binary was built without the feature `cluster`".into()))
    }

    pub fn shortcomings(&self) -> Ready<Result<Vec<&'static str>, EngineError>> {
        match *self {}
    }
}

impl Engine for NoEngine {
    async fn create(&self, _: LogIdentity) -> Result<Option<EntryId>, EngineError> {
        match *self {}
    }

    async fn create_anew(&self, _: LogIdentity, _: LogIdentity) -> Result<Option<EntryId>, EngineError> {
        match *self {}
    }

    async fn identity(&self) -> Result<Option<LogIdentity>, EngineError> {
        match *self {}
    }

    async fn append(&self, _: LogIdentity, _: NewEntry<'_>) -> Result<EntryId, EngineError> {
        match *self {}
    }

    async fn read(&self, _: EntryId, _: usize, _: Duration) -> Result<Vec<LogEntry>, EngineError> {
        match *self {}
    }

    async fn trim(&self, _: LogIdentity, _: Duration, _: u64) -> Result<(), EngineError> {
        match *self {}
    }

    async fn beat(&self, _: LogIdentity, _: Heartbeat<'_>) -> Result<ClusterView, EngineError> {
        match *self {}
    }

    async fn look(&self, _: LogIdentity) -> Result<ClusterView, EngineError> {
        match *self {}
    }

    async fn hold_duty(&self, _: LogIdentity, _: &str, _: Duration) -> Result<Option<u64>, EngineError> {
        match *self {}
    }

    async fn drop_duty(&self, _: &str) -> Result<(), EngineError> {
        match *self {}
    }

    async fn end_lease(&self, _: &str, _: bool) -> Result<bool, EngineError> {
        match *self {}
    }

    async fn share(&self, _: LogIdentity, _: &str, _: &[(KeyId, KeyNeed)]) -> Result<Vec<KeyShare>, EngineError> {
        match *self {}
    }

    async fn restate(&self, _: LogIdentity, _: &str, _: &[(KeyId, KeyNeed)], _: u64) -> Result<(), EngineError> {
        match *self {}
    }

    async fn give_back(
        &self,
        _: LogIdentity,
        _: &str,
        _: &[(KeyId, Unused)],
        _: Option<EntryId>,
    ) -> Result<(), EngineError> {
        match *self {}
    }

    async fn reset_usage(&self, _: LogIdentity, _: &KeyId) -> Result<EntryId, EngineError> {
        match *self {}
    }

    async fn put_streams(&self, _: LogIdentity, _: &str, _: &KeyId, _: u32, _: u32) -> Result<bool, EngineError> {
        match *self {}
    }

    async fn end_streams(&self, _: &str) -> Result<(), EngineError> {
        match *self {}
    }

    async fn recall(&self, _: &KeyId, _: LimitSet) -> Result<EntryId, EngineError> {
        match *self {}
    }

    async fn is_recalled(&self, _: Option<&str>, _: EntryId) -> Result<bool, EngineError> {
        match *self {}
    }

    async fn last_recall(&self) -> Result<EntryId, EngineError> {
        match *self {}
    }

    async fn recalls(&self, _: EntryId, _: Duration) -> Result<Vec<Recall>, EngineError> {
        match *self {}
    }
}

impl CopyRelay for NoEngine {
    async fn ask_for_copy(&self, _: &str) -> Result<(), EngineError> {
        match *self {}
    }

    async fn withdraw_ask(&self, _: &str) -> Result<(), EngineError> {
        match *self {}
    }

    async fn next_asked(&self) -> Result<Option<String>, EngineError> {
        match *self {}
    }

    async fn put_piece(&self, _: &str, _: &[u8]) -> Result<usize, EngineError> {
        match *self {}
    }

    async fn pieces_waiting(&self, _: &str) -> Result<usize, EngineError> {
        match *self {}
    }

    async fn take_piece(&self, _: &str, _: Duration) -> Result<Option<Vec<u8>>, EngineError> {
        match *self {}
    }

    async fn drop_pieces(&self, _: &str) -> Result<(), EngineError> {
        match *self {}
    }
}
