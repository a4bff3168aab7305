//! What every command starts from: where the data is, and the way to it.

use std::path::PathBuf;

use serde::de::DeserializeOwned;

use super::output::{self, Output};
use crate::admin::{Access, Command, DataDir, Door, Setup};
use crate::config::{ConfigError, Settings};

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) data: DataDir,
    pub(super) config: Option<PathBuf>,
    pub(super) output: Output,
}

impl Session {
    /// The settings of the file and the environment.
    pub(super) fn settings(&self) -> Result<Settings, ConfigError> {
        // A variable that is no text cannot be one of ours.
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Settings::gather(self.config.as_deref(), variables)
    }

    /// The server, or the file if none runs.
    pub(super) async fn door(&self, access: Access) -> anyhow::Result<Door> {
        let door = Door::find(&self.data, access, || Ok(Setup::of(&self.settings()?.read()?)?)).await?;
        if door.damage_count() > 0 {
            let told = format!("{} rows of the file cannot be read: run `oddsbox check`", door.damage_count());
            output::complain("warning", &told);
        }
        Ok(door)
    }

    /// Has one command done.
    pub(super) fn ask<A: DeserializeOwned>(&self, access: Access, command: Command) -> anyhow::Result<A> {
        block_on(async {
            let door = self.door(access).await?;
            let answer = door.ask(command).await;
            door.close().await?;
            Ok(answer?)
        })
    }
}

/// Runs what waits. One thread is enough for a command.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
