//! The context of a command: its global options, and access to the server or the file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::DEFAULT_DATA;
use super::demo::DEMO_DATA;
use super::output::{Bar, Output};
use crate::admin::{Access, AdminAccess, AdminError, Command, DataDir, ProgressAnswer, Setup};
use crate::config::{Config, ConfigError, Settings};

/// How often the progress bar is updated.
const WATCH_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub(super) data: DataDir,
    pub(super) config: Option<PathBuf>,
    pub(super) output: Output,
}

impl Invocation {
    /// The settings of the file and the environment.
    pub(super) fn settings(&self) -> Result<Settings, ConfigError> {
        // Variables that are not UTF-8 are not settings.
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Settings::gather(self.config.as_deref(), variables)
    }

    /// The configuration of the file and the environment, if it is valid.
    pub(super) fn config(&self) -> Option<Config> {
        self.settings().ok()?.read().ok()
    }

    /// Connects to the server, or opens the file if none runs.
    pub(super) async fn backend(&self, access: Access) -> anyhow::Result<AdminAccess> {
        let found = AdminAccess::find(&self.data, access, || Ok(Setup::of(&self.settings()?.read()?)?)).await;
        let backend = match found {
            Err(error @ AdminError::NoData(_)) if self.is_beside_demo() => {
                anyhow::bail!("{error}; the data of `oddsbox demo` is in {DEMO_DATA}: use --data {DEMO_DATA}")
            }
            found => found?,
        };
        // The check names them.
        if backend.damage_count() > 0 && access != Access::Damaged {
            let message = format!("{} rows of the file cannot be read: run `oddsbox check`", backend.damage_count());
            self.output.diagnostic("warning", &message);
        }
        Ok(backend)
    }

    /// Whether the data directory is the default one and a demo's is next to it.
    fn is_beside_demo(&self) -> bool {
        self.data.path() == Path::new(DEFAULT_DATA) && DataDir::new(DEMO_DATA).file().exists()
    }

    /// Executes one command.
    pub(super) fn ask<A: DeserializeOwned>(&self, access: Access, command: Command) -> anyhow::Result<A> {
        block_on(async {
            let backend = self.backend(access).await?;
            let answer = backend.ask(command).await;
            backend.close().await?;
            Ok(answer?)
        })
    }

    /// Executes one command that reads the whole file, with a progress bar on a terminal.
    pub(super) fn ask_with_progress<A: DeserializeOwned>(&self, access: Access, command: Command) -> anyhow::Result<A> {
        block_on(async {
            let backend = self.backend(access).await?;
            let answer = match Bar::on_terminal() {
                None => backend.ask(command).await,
                Some(bar) => tokio::select! {
                    answer = backend.ask(command) => answer,
                    never = watch(&backend, bar) => never,
                },
            };
            backend.close().await?;
            Ok(answer?)
        })
    }

    /// The program and data directory, quoted for a shell, for commands that the user can paste.
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

/// Updates the progress bar until the future is dropped.
async fn watch<T>(backend: &AdminAccess, bar: Bar) -> T {
    loop {
        tokio::time::sleep(WATCH_EVERY).await;
        // A failed query is skipped: the next one follows shortly.
        if let Ok(progress) = backend.ask::<ProgressAnswer>(Command::Progress).await {
            bar.show(progress.rows_done, progress.rows_total);
        }
    }
}

/// A word quoted for a shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Runs a future on a single-threaded runtime, which is enough for a command.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
