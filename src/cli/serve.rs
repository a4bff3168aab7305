//! `oddsbox serve` and `oddsbox demo`: the service itself.

use std::process::ExitCode;

use clap::Args;

use super::session::Session;
use crate::admin::DataDir;
use crate::config::Settings;

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
    let settings = session.settings()?.with_flag("listen", "--listen", listen);
    settings.read()?;
    serve(ServeOptions { data: session.data.clone(), settings, demo })?;
    Ok(ExitCode::SUCCESS)
}

/// What the server is started with.
#[derive(Debug)]
struct ServeOptions {
    data: DataDir,
    settings: Settings,
    demo: bool,
}

/// Stands in for the server until it is there.
fn serve(options: ServeOptions) -> anyhow::Result<()> {
    let ServeOptions { data, settings, demo } = options;
    tracing::debug!(?data, listen = settings.get("listen").value, demo, "asked to serve");
    anyhow::bail!("this build has no server: use a later one")
}
