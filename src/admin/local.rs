//! A command's way to the file when no server runs: the same writer and the same execution as in a server, for as long
//! as the command takes.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::access::Access;
use super::context::Context;
use super::data_dir::DataDir;
use super::execute::execute;
use super::export::{self, ExportOptions};
use super::pieces::PieceSource;
use super::protocol::{Answer, Command, Failure};
use super::who::own_name;
use crate::clock::Clock;
use crate::config::Config;
use crate::config::catalogue::{self, CatalogueFileError};
use crate::ingest::{
    Feed, HistoryInput, HistoryStream, IngestError, IngestOptions, IngestSummary, LineStream, PayloadBuffer,
    PayloadOptions,
};
use crate::model::Catalogue;
use crate::store::{OpenError, Store, StoreError, StoreOptions};
use crate::writer::{self, HistoryOptions, Stopped, WriteError, Writer, WriterOptions};

/// What a file is opened with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub catalogue: Arc<Catalogue>,
    pub origin: CatalogueOrigin,
    pub store: StoreOptions,
    pub writer: WriterOptions,
    pub clock: Clock,
}

/// What a catalogue was read from.
#[derive(Clone, Debug)]
pub struct CatalogueOrigin {
    pub text: Arc<str>,
    /// The operator named it. Else the one that a file keeps goes before it, where no server says otherwise.
    pub is_given: bool,
}

impl CatalogueOrigin {
    /// An empty file on top of the built-in catalogue.
    pub fn builtin() -> Self {
        CatalogueOrigin { text: "".into(), is_given: false }
    }
}

/// Why a configuration cannot be used to open a file.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("cannot read the catalogue {path}: {error}; name another one with the setting catalogue", path = path.display())]
    Unreadable { path: std::path::PathBuf, error: io::Error },
    #[error("{path}: {error}", path = path.display())]
    Catalogue { path: std::path::PathBuf, error: CatalogueFileError },
    #[error("the sports that the feeds name cannot be added: {error}")]
    Families { error: CatalogueFileError },
}

impl Setup {
    /// What a configuration comes to, on the machine's clock.
    pub fn of(config: &Config) -> Result<Setup, SetupError> {
        let (catalogue, origin) = read_catalogue(config)?;
        let seconds = |duration: std::time::Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
        let writer = WriterOptions {
            refresh_ms: i64::try_from(config.refresh.as_millis()).unwrap_or(i64::MAX),
            stale_after_s: seconds(config.stale_after),
            retention_s: seconds(config.retention),
            quota: config.ingest_quota,
            history: HistoryOptions {
                keep_s: seconds(config.history_keep),
                keep_sandbox_s: seconds(config.history_keep_sandbox),
                bytes_max: config.history_bytes_max,
                resume_s: seconds(config.history_resume),
            },
        };
        let store = StoreOptions { cache_bytes: config.cache_bytes, ..StoreOptions::default() };
        Ok(Setup { catalogue: Arc::new(catalogue), origin, store, writer, clock: Clock::system() })
    }

    /// The same for a file that no server has: unless the operator named a catalogue, the one that the file was last
    /// served with, so that a command does not bring the file up to another.
    pub(super) fn for_file(self, path: &Path) -> Result<Setup, LocalError> {
        if self.origin.is_given {
            return Ok(self);
        }
        let Some(text) = Store::stored_catalogue(path, self.store)? else { return Ok(self) };
        let catalogue = Arc::new(catalogue::parse(&text).map_err(LocalError::Catalogue)?);
        Ok(Setup { catalogue, origin: CatalogueOrigin { text: text.into(), is_given: false }, ..self })
    }
}

/// The catalogue that a configuration names, with the families of sports that only its feeds name.
fn read_catalogue(config: &Config) -> Result<(Catalogue, CatalogueOrigin), SetupError> {
    let Some(path) = &config.catalogue else {
        return with_feeds(catalogue::builtin(), CatalogueOrigin::builtin(), config)
            .map_err(|error| SetupError::Families { error });
    };
    let text = std::fs::read_to_string(path).map_err(|error| SetupError::Unreadable { path: path.clone(), error })?;
    let read = catalogue::parse(&text);
    let read = read.and_then(|read| with_feeds(read, CatalogueOrigin { text: text.into(), is_given: true }, config));
    read.map_err(|error| SetupError::Catalogue { path: path.clone(), error })
}

fn with_feeds(
    catalogue: Catalogue,
    origin: CatalogueOrigin,
    config: &Config,
) -> Result<(Catalogue, CatalogueOrigin), CatalogueFileError> {
    let named = config.feeds.iter().flat_map(|feed| &feed.sports);
    let families: BTreeSet<&str> = named.filter_map(|key| catalogue.new_family(key)).collect();
    if families.is_empty() {
        return Ok((catalogue, origin));
    }
    let text = catalogue::with_families(&origin.text, &Vec::from_iter(families))?;
    Ok((catalogue::parse(&text)?, CatalogueOrigin { text: text.into(), ..origin }))
}

/// Why the file could not be opened, or not be left in order.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the catalogue that the file keeps cannot be used ({0}): name one with the setting catalogue")]
    Catalogue(CatalogueFileError),
    #[error("the file could not be loaded: {0}")]
    Load(#[from] StoreError),
    #[error("the writer could not be started: {0}")]
    Start(#[from] io::Error),
    #[error("the last changes could not be written: {0}")]
    Close(WriteError),
}

/// The open file.
#[derive(Debug)]
pub struct Local {
    context: Context,
    stopped: Stopped,
    who: String,
    damage_count: u64,
    /// Nothing can be written to the file, and nothing is missed by that.
    is_inspected: bool,
}

impl Local {
    /// Opens and loads the file. Blocks for as long as that takes.
    pub(super) fn open(data: &DataDir, setup: Setup, access: Access) -> Result<Local, LocalError> {
        let Setup { catalogue, store, writer, clock, .. } = setup.for_file(&data.file())?;
        let open = if access == Access::Damaged { Store::open_or_inspect } else { Store::open };
        let store = open(&data.file(), Arc::clone(&catalogue), store)?;
        let is_inspected = store.is_inspected();
        let opened = Writer::open(store, catalogue, clock.clone(), writer).map_err(|error| match error {
            StoreError::Damaged(detail) => {
                OpenError::Damaged { place: data.file().display().to_string(), detail }.into()
            }
            error => LocalError::Load(error),
        })?;
        let (keyring, boards) = (Arc::clone(opened.writer.keyring()), Arc::clone(opened.writer.boards()));
        let (feeders, history) = (Arc::clone(opened.writer.feeders()), opened.writer.history());
        let damage_count = opened.damage.count();
        let (writer, stopped) = writer::spawn(opened.writer)?;
        let context = Context {
            writer,
            keyring,
            feeders,
            boards,
            history,
            clock,
            data: data.clone(),
            ledger: Arc::default(),
            server: None,
            console: None,
        };
        Ok(Local { context, stopped, who: own_name()?, damage_count, is_inspected })
    }

    /// How many rows could not be read.
    pub(super) fn damage_count(&self) -> u64 {
        self.damage_count
    }

    pub(super) async fn ask(&self, command: Command) -> Result<Answer, Failure> {
        execute(command, &self.context, &self.who).await
    }

    /// Takes in feed lines until their end. The error is that of the source, if it broke off.
    pub(super) async fn ingest(
        &self,
        options: IngestOptions,
        mut source: PieceSource,
    ) -> Result<Result<IngestSummary, IngestError>, io::Error> {
        let mut lines = match LineStream::open(options, Feed::push(), &self.context.ingest()).await {
            Ok(lines) => lines,
            Err(error) => return Ok(Err(error)),
        };
        while let Some(piece) = source.recv().await {
            if let Err(error) = lines.push(&piece?).await {
                return Ok(Err(error));
            }
        }
        Ok(lines.finish().await)
    }

    /// Takes in history. The error is that of the source, if it broke off.
    pub(super) async fn ingest_history(
        &self,
        options: HistoryInput,
        mut source: PieceSource,
    ) -> Result<Result<IngestSummary, IngestError>, io::Error> {
        let mut history = match HistoryStream::open(options, Feed::push(), &self.context.ingest()) {
            Ok(history) => history,
            Err(error) => return Ok(Err(error)),
        };
        while let Some(piece) = source.recv().await {
            if let Err(error) = history.push(&piece?).await {
                return Ok(Err(error));
            }
        }
        Ok(history.finish().await)
    }

    /// A world or its history as lines.
    pub(super) fn export(&self, options: ExportOptions) -> PieceSource {
        export::start(options, &self.context.boards, &self.context.history)
    }

    /// Takes in a payload of The Odds API. The error is that of the source, if it broke off.
    pub(super) async fn ingest_payload(
        &self,
        options: &PayloadOptions,
        mut source: PieceSource,
    ) -> Result<Result<IngestSummary, IngestError>, io::Error> {
        let mut payload = PayloadBuffer::default();
        while let Some(piece) = source.recv().await {
            if let Err(error) = payload.push(&piece?) {
                return Ok(Err(error));
            }
        }
        Ok(payload.finish(options, Feed::push(), &self.context.ingest()).await)
    }

    /// Closes the file in order. Blocks until everything is on disk.
    pub(super) fn close(self) -> Result<(), LocalError> {
        drop(self.context);
        let closed = self.stopped.join();
        if self.is_inspected { Ok(()) } else { closed.map_err(LocalError::Close) }
    }
}
