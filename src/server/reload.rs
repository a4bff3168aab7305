//! Reloading: the configuration is read again while the server runs, and what can change does.
//!
//! 1. The file and the environment are read and checked as at a start, and so are the log's filter and the certificate;
//!    anything wrong with them changes nothing.
//! 2. What can change is put in force: bounds and deadlines for the connections that come next, the rest at once.
//! 3. Receivers of [`Server::config`](super::Server::config) are notified; settings that need a restart stay as they were.
//! 4. One log line names the settings that changed, another those that need a restart; the audit log has both.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tracing_subscriber::EnvFilter;

use super::bounds::Bounds;
use super::logging::LogFilter;
use super::notify;
use crate::config::{Config, RELOADED, Settings};
use crate::http;
use crate::tls::{Acceptor, Certificate};
use crate::writer::WriterHandle;

/// When and from where a server reads its configuration again.
pub struct Reload {
    /// Receives a message each time that the configuration is to be read.
    pub asked: mpsc::Receiver<()>,
    /// Reads it, with the flags of the command line applied; an error is one line.
    pub gather: Box<dyn Fn() -> Result<Settings, String> + Send>,
    /// What the server was started with.
    pub settings: Settings,
    pub log: LogFilter,
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reload").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What a running server can change of itself.
pub(super) struct Reloading {
    pub reload: Reload,
    pub config: watch::Sender<Arc<Config>>,
    pub bounds: Bounds,
    pub service: Arc<http::Service>,
    pub tls: Option<Arc<Acceptor>>,
    pub writer: WriterHandle,
    /// The status that the service manager gets when a reload is over.
    pub status: String,
}

/// A configuration that was read again and is valid.
struct Read {
    settings: Settings,
    config: Config,
    filter: EnvFilter,
    certificate: Option<Certificate>,
}

impl Reloading {
    /// Reloads whenever it is asked to.
    pub(super) async fn run(mut self) {
        while let Some(()) = self.reload.asked.recv().await {
            notify::reloading();
            match self.read() {
                Ok(read) => self.apply(read).await,
                Err(error) => tracing::error!(%error, "not reloaded, nothing changed"),
            }
            notify::ready(&self.status);
        }
    }

    fn read(&self) -> Result<Read, String> {
        let settings = (self.reload.gather)()?;
        let config = settings.read().map_err(|error| error.to_string())?;
        let filter = LogFilter::read(&config.log).map_err(|error| error.to_string())?;
        let files = config.tls.as_ref().filter(|_| self.tls.is_some());
        let certificate = files.map(|files| Certificate::read(&files.certificate, &files.key)).transpose();
        let certificate = certificate.map_err(|error| error.to_string())?;
        Ok(Read { settings, config, filter, certificate })
    }

    async fn apply(&mut self, Read { settings, config, filter, certificate }: Read) {
        let running = Arc::clone(&self.config.borrow());
        let keeps_tls = running.tls.is_some() == config.tls.is_some();
        let is_reloaded = |name: &&str| RELOADED.contains(name) && (keeps_tls || !name.starts_with("tls."));
        let (mut changed, waiting): (Vec<_>, Vec<_>) =
            self.reload.settings.differing(&settings).into_iter().partition(is_reloaded);
        self.reload.settings.adopt(&settings, &changed);

        let config = config.reloaded_over(&running);
        if config.feeds != running.feeds {
            changed.push("feeds");
        }
        self.service.allow_query_key(config.allow_query_key);
        self.bounds.set(&config, self.tls.as_ref());
        if let (Some(tls), Some(certificate)) = (&self.tls, certificate) {
            match tls.replace(certificate) {
                Ok(true) => changed.push("the certificate"),
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "the certificate could not be put in force"),
            }
        }
        self.config.send_replace(Arc::new(config));

        let list = |names: &[&str]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        tracing::info!(changed = list(&changed), "reloaded");
        if !waiting.is_empty() {
            tracing::warn!(settings = list(&waiting), "changed, but only a restart puts them in force");
        }
        self.reload.log.set(filter);
        let detail = format!("changed: {}; waiting for a restart: {}", list(&changed), list(&waiting));
        if let Err(error) = self.writer.audit("oddsbox", "reload", "service", detail).await {
            tracing::warn!(%error, "the reload is not in the audit log");
        }
    }
}
