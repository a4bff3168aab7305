//! The server's side of the admin interface: a Unix socket in a directory that only its owner can enter, with HTTP/1.1 on
//! it, so that `curl --unix-socket` works as well as the commands.
//!
//! A user who can connect may do everything; the audit log records who it was.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::context::Context;
use super::data_dir::{DataDir, DataDirError};
use super::respond::respond;
use crate::http;
use crate::metrics::Traffic;

const CONNECTIONS_MAX: u32 = 64;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const HEADER_BYTES_MAX: usize = 16 << 10;

/// Why the socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(transparent)]
    Place(#[from] DataDirError),
    #[error("another oddsbox serves this directory (it answers on {path}): stop it first", path = path.display())]
    InUse { path: PathBuf },
    #[error("the admin socket {path} cannot be made: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// The admin interface, reachable from the moment it is bound.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    file: SocketFile,
}

/// The socket's file, which goes when this does: drop it before the database is closed, or the socket that disappears may
/// be the next server's.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Listener {
    /// Makes the socket. A socket without a server behind it is replaced; a server that answers is left alone.
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
        Ok(Listener { socket, file: SocketFile(path) })
    }

    pub fn path(&self) -> &Path {
        &self.file.0
    }

    /// Answers until `shutdown` comes; then what is under way has `grace` to end. A command that was sent is still
    /// executed after that, only its response is lost.
    pub async fn serve(self, context: Context, shutdown: impl Future<Output = ()>, grace: Duration) {
        let Listener { socket, file } = self;
        let interface = AdminInterface { context, traffic: Arc::new(Traffic::new(&[], &[])) };
        let options = watch::Sender::new(options(grace));
        let shutdown = async {
            shutdown.await;
            drop(file);
        };
        http::run(socket, Arc::new(interface), options.subscribe(), shutdown, std::future::pending()).await;
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn options(grace: Duration) -> http::Options {
    http::Options {
        connections_max: CONNECTIONS_MAX,
        // An export may be read as slowly as its reader likes.
        deadlines: http::Deadlines { head: HEADER_TIMEOUT, write: Duration::MAX, ..http::Deadlines::default() },
        drain: grace,
        http: http::HttpOptions { http2: false, keep_alive: true, head_bytes_max: HEADER_BYTES_MAX },
        ..http::Options::default()
    }
}

/// What answers on the socket.
#[derive(Debug)]
struct AdminInterface {
    context: Context,
    traffic: Arc<Traffic>,
}

impl http::Respond for AdminInterface {
    fn respond<'a>(&'a self, request: http::IncomingRequest, peer: &'a http::Peer) -> http::ResponseFuture<'a> {
        Box::pin(respond(request, &self.context, peer))
    }

    fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
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
