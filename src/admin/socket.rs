//! The server's side of the admin door: a Unix socket in a directory that only its owner can enter, with HTTP/1.1 on
//! it, so that `curl --unix-socket` works as well as the commands.
//!
//! Whoever can connect may do everything; who it was stands in the audit log.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tracing::Level;

use super::context::Context;
use super::place::{DataDir, PlaceError};
use super::respond::respond;
use super::who::user_name;
use crate::log::{LineKind, limited};

const CONNECTIONS_MAX: usize = 64;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const HEADER_BYTES_MAX: usize = 16 << 10;
/// How long to wait after a connection could not be accepted, for want of file descriptors most likely.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Why the door cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("another oddsbox serves this directory (it answers on {path}): stop it first", path = path.display())]
    InUse { path: PathBuf },
    #[error("the admin socket {path} cannot be made: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// The door, open from the moment it is bound. Its file goes when it does: let it go before the database is closed, or
/// the socket that disappears may be the next server's.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Makes the socket. What a server that died left behind is taken away; a server that answers is left alone.
    pub async fn bind(data: &DataDir) -> Result<Listener, BindError> {
        let path = data.socket()?;
        let io_error = |error| BindError::Io { path: path.clone(), error };
        private_directory(&data.admin()).map_err(io_error)?;
        match UnixStream::connect(&path).await {
            Ok(_) => return Err(BindError::InUse { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(&path).map_err(io_error)?;
            }
            Err(error) => return Err(io_error(error)),
        }
        let socket = UnixListener::bind(&path).map_err(io_error)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(io_error)?;
        Ok(Listener { socket, path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers until `shutdown` comes; then what is under way has `grace` to end.
    pub async fn serve(self, context: Context, shutdown: impl Future<Output = ()>, grace: Duration) {
        let context = Arc::new(context);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let (stop, stopping) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                (stream, place) = self.accept(&places) => {
                    connections.spawn(converse(stream, place, Arc::clone(&context), stopping.clone()));
                }
            }
        }
        drop((context, self));
        let _ = stop.send(true);
        let ended = async { while connections.join_next().await.is_some() {} };
        // Dropping what is left ends it: a command that was sent is still done, only its answer is lost.
        let _ = tokio::time::timeout(grace, ended).await;
    }

    /// The next connection, once there is a place for it.
    async fn accept(&self, places: &Arc<Semaphore>) -> (UnixStream, Option<OwnedSemaphorePermit>) {
        let place = Arc::clone(places).acquire_owned().await.ok();
        loop {
            match self.socket.accept().await {
                Ok((stream, _)) => return (stream, place),
                Err(error) => {
                    limited!(LineKind::Connection, Level::WARN, %error, "failed to accept an admin connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Serves one connection.
async fn converse(
    stream: UnixStream,
    _place: Option<OwnedSemaphorePermit>,
    context: Arc<Context>,
    mut stopping: watch::Receiver<bool>,
) {
    let who: Arc<str> = match stream.peer_cred() {
        Ok(peer) => user_name(peer.uid()).into(),
        Err(error) => {
            limited!(
                LineKind::AdminConnection,
                Level::WARN,
                %error,
                "rejected admin connection: peer credentials unavailable"
            );
            return;
        }
    };
    let service = service_fn(move |request| respond(request, Arc::clone(&context), Arc::clone(&who)));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_header_size(HEADER_BYTES_MAX);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = async { drop(stopping.wait_for(|stop| *stop).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        limited!(LineKind::Connection, Level::DEBUG, %error, "admin connection broke off");
    }
}

/// A directory of mode 0700, made if it is missing and closed to others if it is open to them.
fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    Ok(())
}
