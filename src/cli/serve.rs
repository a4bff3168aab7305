//! `oddsbox serve` and `oddsbox demo`: the service itself.

use std::process::ExitCode;

use clap::Args;

use super::session::Session;
use super::{banner, output};
use crate::admin::{ConsoleDesk, Setup};
use crate::config::{Config, Origin};
use crate::server::{Extras, Server, bind, init_logging, signals};

/// Where the demonstration's console is, if that port is free.
const DEMO_CONSOLE: &str = "127.0.0.1:8081";

/// Run the service
///
/// Stops in order on SIGTERM and SIGINT. One server at a time can use a data directory.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Address of the public interface; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

/// Try it out: both worlds simulated, keys issued, curl lines to paste
///
/// Issues a sandbox and a production key on the first run. One server at a time can use a data directory.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Address of the public interface; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

impl Serve {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        start(session, self.listen, false)
    }
}

impl Demo {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        start(session, self.listen, true)
    }
}

fn start(session: &Session, listen: Option<String>, demo: bool) -> anyhow::Result<ExitCode> {
    let mut settings = session.settings()?.with_flag("listen", "--listen", listen);
    // The demonstration has a console unless it is told where, and then that is meant.
    let console_any_port = demo && settings.get("console.listen").origin == Origin::Default;
    if console_any_port {
        settings = settings.with_flag("console.listen", "oddsbox demo", Some(DEMO_CONSOLE.to_owned()));
    }
    let config = settings.read()?;
    let extras = Extras { simulate_live: demo, console_any_port };
    init_logging(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(session, config, extras))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(session: &Session, config: Config, extras: Extras) -> anyhow::Result<()> {
    let (stop, hurry) = signals()?;
    let listener = bind(config.listen).await?;
    let address = listener.local_addr()?;
    let base = format!("{}://{address}", config.scheme());
    let setup = Setup::of(&config)?;
    let server = Server::open(session.data.clone(), config, setup)?;
    let ready = async |server: &Server, console: Option<&ConsoleDesk>| {
        let announced = if extras.simulate_live {
            banner::show(session, server, &base, console).await
        } else {
            listening(&base, console)
        };
        if let Err(error) = announced {
            tracing::warn!(%error, "the start could not be announced");
        }
    };
    server.serve(listener, extras, ready, stop, hurry).await?;
    Ok(())
}

/// The line that scripts wait for.
fn listening(base: &str, console: Option<&ConsoleDesk>) -> anyhow::Result<()> {
    let console = console.map(|desk| format!("console on {}\n", desk.base())).unwrap_or_default();
    output::text(&format!("listening on {base}\n{console}"))
}
