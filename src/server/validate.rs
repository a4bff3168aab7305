//! Validates a configuration as a start does, in the same order, without opening the data, binding an address or writing
//! anything. What only a start can find remains: an address in use, damaged data, a drop directory that is read-only.

use super::logging::{LogFilter, LogFilterError};
use super::{ServeError, acceptor};
use crate::admin::{Setup, SetupError};
use crate::config::Config;
use crate::ingest::{DropDirectory, Pollers};

/// Why a server would not start with a configuration. Each message is that of the start.
#[derive(Debug, thiserror::Error)]
pub enum InvalidConfig {
    #[error(transparent)]
    Log(#[from] LogFilterError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// Validates the parts of a configuration that refer to files, the catalogue or a filter.
pub fn validate(config: &Config) -> Result<(), InvalidConfig> {
    LogFilter::read(&config.log)?;
    let setup = Setup::of(config)?;
    config.tls.as_ref().map(acceptor).transpose()?;
    if let Some(path) = &config.ingest_drop {
        DropDirectory::validate(path).map_err(ServeError::from)?;
    }
    Ok(Pollers::validate(&config.feeds, &setup.catalogue).map_err(ServeError::from)?)
}
