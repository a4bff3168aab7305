//! How a command reaches the data: through the server's socket if a server runs, else through the file itself.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::client::{Client, ClientError};
use super::data_dir::{DataDir, DataDirError};
use super::export::ExportOptions;
use super::local::{Local, LocalError, Setup};
pub use super::pieces::PieceSource;
use super::protocol::{Command, Failure};
use crate::ingest::{HistoryInput, IngestError, IngestOptions, IngestSummary, PayloadOptions};

use crate::store::OpenError;

/// How long a server may take to start or to stop, during which it has the file open and does not answer.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(100);

/// What a command needs of a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It must exist.
    Existing,
    /// It must exist, and may be damaged: nothing is written to it then.
    Damaged,
    /// It is made if it is missing.
    Create,
}

/// Why a command did not get its answer.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("no oddsbox data in {}: check --data or ODDSBOX_DATA, or create it with `oddsbox serve`", .0.display())]
    NoData(PathBuf),
    #[error("no permission to reach the server of {}: run this as the user who runs it", .0.display())]
    Permission(PathBuf),
    #[error(
        "{} is in use, but no server answers there (waited {} s): one is starting or stopping, so try again",
        .0.display(), PATIENCE.as_secs()
    )]
    Busy(PathBuf),
    #[error(transparent)]
    Place(#[from] DataDirError),
    #[error("the admin socket cannot be used: {0}")]
    Socket(io::Error),
    #[error("{0}")]
    Setup(Box<dyn Error + Send + Sync>),
    #[error(transparent)]
    Client(ClientError),
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error(transparent)]
    Refused(Failure),
    #[error("cannot read the input: {0}")]
    Source(io::Error),
    #[error("the server answers something else ({0}): use the same version of oddsbox for both")]
    Answer(#[from] serde_json::Error),
}

impl From<ClientError> for AdminError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(failure) => AdminError::Refused(failure),
            other => AdminError::Client(other),
        }
    }
}

/// The server, or the file.
#[derive(Debug)]
pub enum AdminAccess {
    Server(Client),
    File(Box<Local>),
}

impl AdminAccess {
    /// The server of a data directory, if one answers.
    pub async fn server(data: &DataDir) -> Result<Option<AdminAccess>, AdminError> {
        match Client::connect(&data.socket()?).await {
            Ok(client) => Ok(Some(AdminAccess::Server(client))),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::NotADirectory => Ok(None),
                // The listener closed while we connected: its server is stopping, which counts as none.
                io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
                    Ok(None)
                }
                io::ErrorKind::PermissionDenied => Err(AdminError::Permission(data.path().to_owned())),
                _ => Err(AdminError::Socket(error)),
            },
        }
    }

    /// The server of a data directory or, if none runs, its file, opened with what `setup` gives. A server that is
    /// starting or stopping is waited for.
    pub async fn find(
        data: &DataDir,
        access: Access,
        setup: impl FnOnce() -> Result<Setup, Box<dyn Error + Send + Sync>>,
    ) -> Result<AdminAccess, AdminError> {
        let began = Instant::now();
        if let Some(access) = AdminAccess::server(data).await? {
            return Ok(access);
        }
        if access != Access::Create && !data.file().exists() {
            return Err(AdminError::NoData(data.path().to_owned()));
        }
        let mut setup = setup().map_err(AdminError::Setup)?;
        setup.store.wait_for_lock = Duration::ZERO;
        loop {
            match open(data.clone(), setup.clone(), access).await {
                Err(LocalError::Open(OpenError::InUse { .. })) if began.elapsed() < PATIENCE => {}
                Err(LocalError::Open(OpenError::InUse { .. })) => return Err(AdminError::Busy(data.path().to_owned())),
                opened => return Ok(AdminAccess::File(Box::new(opened?))),
            }
            tokio::time::sleep(RETRY).await;
            if let Some(access) = AdminAccess::server(data).await? {
                return Ok(access);
            }
        }
    }

    /// Rows of the file that could not be read; a server logs its own.
    pub fn damage_count(&self) -> u64 {
        match self {
            AdminAccess::Server(_) => 0,
            AdminAccess::File(local) => local.damage_count(),
        }
    }

    /// Executes a command. The server and the file give the same JSON, which is parsed as the command's answer.
    pub async fn ask<A: DeserializeOwned>(&self, command: Command) -> Result<A, AdminError> {
        match self {
            AdminAccess::Server(client) => Ok(serde_json::from_slice(&client.ask(&command).await?)?),
            AdminAccess::File(local) => {
                let answer = local.ask(command).await.map_err(AdminError::Refused)?;
                Ok(serde_json::from_slice(&serde_json::to_vec(&answer)?)?)
            }
        }
    }

    /// Takes in feed lines until their end.
    pub async fn ingest(&self, options: IngestOptions, source: PieceSource) -> Result<IngestSummary, AdminError> {
        match self {
            AdminAccess::Server(client) => Ok(serde_json::from_slice(&client.ingest(options, source).await?)?),
            AdminAccess::File(local) => {
                local.ingest(options, source).await.map_err(AdminError::Source)?.map_err(refused)
            }
        }
    }

    /// A world or its history as lines, as they come.
    pub async fn export(&self, options: ExportOptions) -> Result<PieceSource, AdminError> {
        match self {
            AdminAccess::Server(client) => Ok(client.export(options).await?),
            AdminAccess::File(local) => Ok(local.export(options)),
        }
    }

    /// Takes in a payload of The Odds API.
    pub async fn ingest_payload(
        &self,
        options: &PayloadOptions,
        source: PieceSource,
    ) -> Result<IngestSummary, AdminError> {
        match self {
            AdminAccess::Server(client) => Ok(serde_json::from_slice(&client.ingest_payload(options, source).await?)?),
            AdminAccess::File(local) => {
                local.ingest_payload(options, source).await.map_err(AdminError::Source)?.map_err(refused)
            }
        }
    }

    /// Takes in history.
    pub async fn ingest_history(
        &self,
        options: &HistoryInput,
        source: PieceSource,
    ) -> Result<IngestSummary, AdminError> {
        match self {
            AdminAccess::Server(client) => Ok(serde_json::from_slice(&client.ingest_history(options, source).await?)?),
            AdminAccess::File(local) => {
                let taken = local.ingest_history(options.clone(), source).await;
                taken.map_err(AdminError::Source)?.map_err(refused)
            }
        }
    }

    /// Writes a file's last changes.
    pub async fn close(self) -> Result<(), AdminError> {
        match self {
            AdminAccess::Server(_) => Ok(()),
            AdminAccess::File(local) => Ok(blocking(move || local.close()).await?),
        }
    }
}

fn refused(error: IngestError) -> AdminError {
    AdminError::Refused(error.into())
}

async fn open(data: DataDir, setup: Setup, access: Access) -> Result<Local, LocalError> {
    let runtime = tokio::runtime::Handle::current();
    blocking(move || {
        // The writer's peer is asked for its name through a socket, which needs a runtime.
        let _entered = runtime.enter();
        Local::open(&data, setup, access)
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LocalError> + Send + 'static,
) -> Result<T, LocalError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(LocalError::Start(io::Error::other(error))))
}
