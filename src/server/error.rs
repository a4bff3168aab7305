//! Why a server did not start, or did not stop cleanly.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::admin::{BindError, ConsoleError, MonitorError};
use crate::cluster::connect::ConnectError;
use crate::cluster::member::StartError;
use crate::ingest::{DropError, FeedError};
use crate::store::{OpenError, StoreError};
use crate::tls::CertificateError;
use crate::writer::WriteError;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the data cannot be loaded: {0}")]
    Load(#[from] StoreError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Drop(#[from] DropError),
    #[error(transparent)]
    Admin(#[from] BindError),
    #[error(transparent)]
    Console(#[from] ConsoleError),
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Feed(#[from] FeedError),
    #[error(
        "the live world in {data} was filled by `oddsbox demo`, and production keys would be served invented prices: \
         delete it with `oddsbox demo clear --data {data}`, or choose another directory with --data",
        data = .0.display()
    )]
    Simulated(PathBuf),
    #[error(
        "the live world in {data} has data that was not simulated, and `oddsbox demo` would mix invented prices into it: \
         choose another directory with --data, or serve this one with `oddsbox serve --data {data}`",
        data = .0.display()
    )]
    NotSimulated(PathBuf),
    #[error(
        "{data} belongs to a cluster, and cluster.url is not set: set it, or make this a single node with \
         `oddsbox cluster leave`",
        data = .0.display()
    )]
    NoEngine(PathBuf),
    #[error(
        "cluster.url is set, and {data} does not belong to a cluster: make it the first node of a new one with \
         `oddsbox cluster init`, or name an empty directory with --data to join one",
        data = .0.display()
    )]
    NoMember(PathBuf),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Member(#[from] StartError),
    #[error("{0}")]
    Behind(String),
    #[error(
        "a part of the server panicked, which is a bug in oddsbox: report it with the line of the log that says where, and \
         start the server again"
    )]
    Panicked,
    #[error("the system refused a thread, a signal or a socket: {0}")]
    System(#[from] io::Error),
}

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} ({error}): stop what uses that address, or choose another with {setting}")]
pub struct ListenError {
    pub(super) address: SocketAddr,
    pub(super) error: io::Error,
    pub(super) setting: &'static str,
}
