//! `oddsbox serve`: runs the service, as does `oddsbox demo`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::invocation::Invocation;
use super::{demo, output};
use crate::admin::{ConsoleSessions, Setup};
use crate::config::{Config, SettingOrigin, Settings};
use crate::server::{Reload, ServeOptions, Server, base_url, bind, hang_ups, init_logging, signals};

/// The address of the demo's console, if that port is free.
const DEMO_CONSOLE: &str = "127.0.0.1:8081";

/// How long the process waits at its end until the last log lines are written.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// Run the service
///
/// Shuts down gracefully on SIGTERM and SIGINT; reloads its configuration on SIGHUP. Refuses a data directory whose
/// live world was simulated by `oddsbox demo`. One server at a time can use a data directory.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Address of the public API; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

impl ServeArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        start(invocation, self.listen, false)
    }
}

pub(super) fn start(invocation: &Invocation, listen: Option<String>, demo: bool) -> anyhow::Result<ExitCode> {
    let gather = {
        let invocation = invocation.clone();
        move || {
            invocation
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
        serve(invocation, config, ServeOptions { simulate_live: demo, console_any_port, reload: Some(reload) }).await
    });
    let code = match served {
        Ok(()) => ExitCode::SUCCESS,
        // From here on the log owns standard error, and writes to it without blocking.
        Err(error) => {
            crate::log::print(&output::diagnostic_line("error", &error.to_string()));
            ExitCode::FAILURE
        }
    };
    crate::log::flush(FLUSH_WITHIN);
    Ok(code)
}

/// Runs a server until it and all its tasks have ended.
fn run(server: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(server)
}

/// Adds a console to a demo, unless its address is configured. Returns whether any port will do if the default is
/// taken.
fn with_console(settings: Settings, demo: bool) -> (Settings, bool) {
    let uses_default = demo && settings.get("console.listen").origin == SettingOrigin::Default;
    let address = uses_default.then(|| DEMO_CONSOLE.to_owned());
    (settings.with_flag("console.listen", "oddsbox demo", address), uses_default)
}

async fn serve(invocation: &Invocation, config: Config, extras: ServeOptions) -> anyhow::Result<()> {
    let is_demo = extras.simulate_live;
    let (stop, hurry) = signals()?;
    let listener = bind(config.listen)?;
    let address = listener.local_addr()?;
    let base = base_url(&config, address);
    let setup = Setup::of(&config)?;
    let server = Server::open(invocation.data.clone(), config, setup)?;
    let ready = async |server: &Server, console: Option<&ConsoleSessions>| {
        let announced = if is_demo {
            demo::show(invocation, server, &base, console).await
        } else {
            listening(&base, console).await
        };
        if let Err(error) = announced {
            tracing::warn!(%error, "failed to print the server's address");
        }
    };
    server.serve(listener, extras, ready, stop, hurry).await?;
    Ok(())
}

/// Prints the line that scripts wait for.
async fn listening(base: &str, console: Option<&ConsoleSessions>) -> anyhow::Result<()> {
    let console = console.map(|console| format!("console on {}\n", console.base())).unwrap_or_default();
    output::announce(format!("listening on {base}\n{console}")).await
}
