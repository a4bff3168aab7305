//! `oddsbox serve`: the service itself, which `oddsbox demo` starts as well.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::session::Session;
use super::{demo, output};
use crate::admin::{ConsoleDesk, Setup};
use crate::config::{Config, Origin, Settings};
use crate::server::{Extras, Reload, Server, base_url, bind, hang_ups, init_logging, signals};

/// Where the demonstration's console is, if that port is free.
const DEMO_CONSOLE: &str = "127.0.0.1:8081";

/// How long the end of the process waits for standard error to take the last log lines.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// Run the service
///
/// Stops in order on SIGTERM and SIGINT; reads its configuration again on SIGHUP. Refuses a directory whose live world
/// `oddsbox demo` has simulated. One server at a time can use a data directory.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Address of the public interface; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

impl Serve {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        start(session, self.listen, false)
    }
}

pub(super) fn start(session: &Session, listen: Option<String>, demo: bool) -> anyhow::Result<ExitCode> {
    let gather = {
        let session = session.clone();
        move || {
            session
                .settings()
                .map(|settings| with_console(settings.with_flag("listen", "--listen", listen.clone()), demo))
        }
    };
    let (settings, console_any_port) = gather()?;
    let config = settings.read()?;
    let log = init_logging(&config)?;
    let gather = Box::new(move || gather().map(|(settings, _)| settings).map_err(|error| error.to_string()));
    let served = run(async {
        let reload = Reload { asked: hang_ups()?, gather, settings, log };
        serve(session, config, Extras { simulate_live: demo, console_any_port, reload: Some(reload) }).await
    });
    let code = match served {
        Ok(()) => ExitCode::SUCCESS,
        // From here on standard error belongs to the log, which does not wait for it.
        Err(error) => {
            crate::log::print(&output::complaint("error", &error.to_string()));
            ExitCode::FAILURE
        }
    };
    crate::log::flush(FLUSH_WITHIN);
    Ok(code)
}

/// Runs a server to its end, that of every task included.
fn run(server: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(server)
}

/// The demonstration has a console, on any port if its own is taken, unless it is told where: then that is meant.
fn with_console(settings: Settings, demo: bool) -> (Settings, bool) {
    let is_ours = demo && settings.get("console.listen").origin == Origin::Default;
    let address = is_ours.then(|| DEMO_CONSOLE.to_owned());
    (settings.with_flag("console.listen", "oddsbox demo", address), is_ours)
}

async fn serve(session: &Session, config: Config, extras: Extras) -> anyhow::Result<()> {
    let is_demo = extras.simulate_live;
    let (stop, hurry) = signals()?;
    let listener = bind(config.listen)?;
    let address = listener.local_addr()?;
    let base = base_url(&config, address);
    let setup = Setup::of(&config)?;
    let server = Server::open(session.data.clone(), config, setup)?;
    let ready = async |server: &Server, console: Option<&ConsoleDesk>| {
        let announced =
            if is_demo { demo::show(session, server, &base, console).await } else { listening(&base, console).await };
        if let Err(error) = announced {
            tracing::warn!(%error, "failed to print the server's address");
        }
    };
    server.serve(listener, extras, ready, stop, hurry).await?;
    Ok(())
}

/// The line that scripts wait for.
async fn listening(base: &str, console: Option<&ConsoleDesk>) -> anyhow::Result<()> {
    let console = console.map(|desk| format!("console on {}\n", desk.base())).unwrap_or_default();
    output::announce(format!("listening on {base}\n{console}")).await
}
