//! The engine that a configuration names.

use std::io;
use std::path::{Path, PathBuf};

use super::engine::{ClientCertificate, EngineError, EngineOptions, ServedEngine};
use crate::config::{ClusterConfig, TlsFiles, is_node_name};

/// Why there is no engine, or no name for the node.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("cannot read {path}: {error}", path = path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("cluster.url: {0}")]
    Engine(EngineError),
    #[error("this machine has no name that can be a node's: set cluster.node")]
    NoName,
}

/// The engine of a configuration. It is not asked for anything yet.
pub fn connect(config: &ClusterConfig) -> Result<ServedEngine, ConnectError> {
    let password = config.password_file.as_deref().map(read).transpose()?;
    let password = password.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().into());
    let client = |TlsFiles { certificate, key }: &TlsFiles| {
        Ok::<_, ConnectError>(ClientCertificate { certificate: read(certificate)?, key: read(key)? })
    };
    let options = EngineOptions {
        url: config.url.clone(),
        name: config.name.clone(),
        user: config.user.clone(),
        password,
        ca: config.ca.as_deref().map(read).transpose()?,
        client: config.client.as_ref().map(client).transpose()?,
    };
    ServedEngine::connect(&options).map_err(ConnectError::Engine)
}

fn read(path: &Path) -> Result<Vec<u8>, ConnectError> {
    std::fs::read(path).map_err(|error| ConnectError::Unreadable { path: path.to_owned(), error })
}

/// The name of this node.
pub fn node_name(config: &ClusterConfig) -> Result<Box<str>, ConnectError> {
    let of_machine = || {
        let system = rustix::system::uname();
        let name = system.nodename().to_string_lossy();
        is_node_name(&name).then(|| name.as_ref().into())
    };
    config.node.clone().or_else(of_machine).ok_or(ConnectError::NoName)
}
