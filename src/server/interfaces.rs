//! What operators reach a server by: the admin socket, the monitoring address and the console.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::bounds::Bounds;
use super::ending::closed;
use super::facts::{Facts, Phase};
use super::{ServeError, Server};
use crate::admin::{self, ConsoleAddress, ConsoleError, ConsoleListener, ConsoleSessions, Monitor};
use crate::http;

/// How long commands under way have to end when the server stops.
const ADMIN_GRACE: Duration = Duration::from_secs(2);

/// See the module.
pub(super) struct Interfaces {
    admin: JoinHandle<()>,
    console: Option<JoinHandle<()>>,
    /// Of the console, if it is served.
    pub(super) sessions: Option<Arc<ConsoleSessions>>,
}

impl Interfaces {
    /// Waits until they are closed.
    pub(super) async fn closed(self) {
        let _ = self.admin.await;
        if let Some(console) = self.console {
            let _ = console.await;
        }
    }
}

impl Server {
    /// Opens the admin interface, the monitoring address and the console.
    pub(super) async fn open_interfaces(
        &self,
        facts: Facts,
        bounds: &Bounds,
        console_any_port: bool,
        phases: &watch::Receiver<Phase>,
    ) -> Result<Interfaces, ServeError> {
        let console = self.bind_console(console_any_port).await?;
        let sessions = console.as_ref().map(|listener| Arc::clone(listener.sessions()));
        let context = self.context(facts, sessions.clone());
        let admin = tokio::spawn(self.open_admin(context.clone(), phases.clone()).await?);
        let console = console.map(|listener| {
            let options = http::Options { drain: ADMIN_GRACE, ..bounds.console.clone() };
            tokio::spawn(listener.serve(context, options, closed(phases.clone())))
        });
        Ok(Interfaces { admin, console, sessions })
    }

    /// Opens the admin interface and the monitoring address; the returned future serves both until the server closes.
    async fn open_admin(
        &self,
        context: admin::Context,
        phases: watch::Receiver<Phase>,
    ) -> Result<impl Future<Output = ()> + use<>, ServeError> {
        let admin_listen = self.config.borrow().admin_listen;
        let monitor = match admin_listen {
            Some(address) => Some(Monitor::bind(address).await?),
            None => None,
        };
        if let Some(monitor) = &monitor {
            tracing::info!(address = %monitor.address()?, "monitoring address");
        }
        let socket = admin::Listener::bind(&self.data).await?;
        let watched = context.clone();
        Ok(async move {
            let watching = async {
                if let Some(monitor) = monitor {
                    monitor.serve(watched, closed(phases.clone())).await;
                }
            };
            tokio::join!(socket.serve(context, closed(phases.clone()), ADMIN_GRACE), watching);
        })
    }

    /// Takes the console's address, if there is to be a console.
    async fn bind_console(&self, any_port: bool) -> Result<Option<ConsoleListener>, ConsoleError> {
        let config = Arc::clone(&self.config.borrow());
        let Some(address) = config.console_listen else { return Ok(None) };
        let place = ConsoleAddress { address, any_port, host: config.console_host.clone(), is_tls: self.tls.is_some() };
        ConsoleListener::bind(place, self.clock.clone(), &self.data).await.map(Some)
    }
}
