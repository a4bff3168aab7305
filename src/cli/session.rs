//! What every command starts from: where the data is, and the way to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::DEFAULT_DATA;
use super::demo::DEMO_DATA;
use super::output::{self, Bar, Output};
use crate::admin::{Access, AdminAccess, AdminError, Command, DataDir, ProgressAnswer, Setup};
use crate::config::{ConfigError, Settings};

/// How often a bar moves.
const WATCH_EVERY: Duration = Duration::from_millis(100);

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
    pub(super) async fn door(&self, access: Access) -> anyhow::Result<AdminAccess> {
        let found = AdminAccess::find(&self.data, access, || Ok(Setup::of(&self.settings()?.read()?)?)).await;
        let door = match found {
            Err(error @ AdminError::NoData(_)) if self.is_beside_demo() => {
                anyhow::bail!("{error}; the data of `oddsbox demo` is in {DEMO_DATA}: --data {DEMO_DATA}")
            }
            found => found?,
        };
        if door.damage_count() > 0 {
            let told = format!("{} rows of the file cannot be read: run `oddsbox check`", door.damage_count());
            output::complain("warning", &told);
        }
        Ok(door)
    }

    /// Whether the default directory is meant, and there is a demo beside it.
    fn is_beside_demo(&self) -> bool {
        self.data.path() == Path::new(DEFAULT_DATA) && DataDir::new(DEMO_DATA).file().exists()
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

impl Session {
    /// Has one command done that reads the whole file, and shows on a terminal how far it is.
    pub(super) fn ask_watching<A: DeserializeOwned>(&self, access: Access, command: Command) -> anyhow::Result<A> {
        block_on(async {
            let door = self.door(access).await?;
            let answer = match Bar::on_terminal() {
                None => door.ask(command).await,
                Some(bar) => tokio::select! {
                    answer = door.ask(command) => answer,
                    never = watch(&door, bar) => never,
                },
            };
            door.close().await?;
            Ok(answer?)
        })
    }
}

/// Moves the bar until it is dropped.
async fn watch<T>(door: &AdminAccess, bar: Bar) -> T {
    loop {
        tokio::time::sleep(WATCH_EVERY).await;
        // What cannot be told now is told the next time.
        if let Ok(progress) = door.ask::<ProgressAnswer>(Command::Progress).await {
            bar.show(progress.rows_done, progress.rows_total);
        }
    }
}

impl Session {
    /// This program and this data directory as a shell takes them, so that a line that names them can be pasted.
    pub(super) fn command(&self) -> String {
        let program = std::env::args().next().filter(|name| name.contains('/')).unwrap_or("oddsbox".to_owned());
        let data = self.data.path();
        if data == Path::new(DEFAULT_DATA) {
            quoted(&program)
        } else {
            format!("{} --data {}", quoted(&program), quoted(&data.display().to_string()))
        }
    }
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Runs what waits. One thread is enough for a command.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
