//! `oddsbox serve`: runs the service, as does `oddsbox demo`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::demo;
use super::invocation::Invocation;
use super::output::{self, Output};
use super::threads;
use crate::admin::{ConsoleSessions, Setup, join_cluster};
use crate::config::{Config, SettingOrigin, Settings};
use crate::server::{Reload, ServeOptions, Server, SimulatedWorlds, base_url, bind, hang_ups, init_logging, signals};

/// The address of the demo's console, if that port is free.
const DEMO_CONSOLE: &str = "127.0.0.1:8081";

/// The log of a demo: a line for each request would scroll its keys and commands away.
const DEMO_LOG: &str = "info,access=warn";

/// How long the process waits at its end until the last log lines are written.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// Run the service
///
/// Shuts down gracefully on SIGTERM and SIGINT; reloads its configuration on SIGHUP. Refuses a data directory whose
/// live world was simulated by `oddsbox demo`. One server at a time can use a data directory.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox serve
  oddsbox serve --config oddsbox.toml
  oddsbox serve --data /var/lib/oddsbox --listen 0.0.0.0:8080
  ODDSBOX_REFRESH=10s oddsbox serve")]
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
                .map(|settings| for_demo(settings.with_flag("listen", "--listen", listen.clone()), demo))
        }
    };
    let (settings, console_any_port) = gather()?;
    let config = settings.read()?;
    let log = init_logging(&config)?;
    let gather = Box::new(move || gather().map(|(settings, _)| settings).map_err(|error| error.to_string()));
    let served = run(async {
        let reload = Reload { asked: hang_ups()?, gather, settings, log };
        let simulated = if demo { SimulatedWorlds::Both } else { SimulatedWorlds::Sandbox };
        serve(invocation, config, ServeOptions { simulated, console_any_port, reload: Some(reload) }).await
    });
    let code = match served {
        Ok(()) => ExitCode::SUCCESS,
        // From here on the log owns standard error, and writes to it without blocking.
        Err(error) => {
            crate::log::print(&invocation.output.diagnostic_line("error", &error.to_string()));
            ExitCode::FAILURE
        }
    };
    crate::log::flush(FLUSH_WITHIN);
    Ok(code)
}

/// Runs a server until it and all its tasks have ended.
fn run(server: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    threads::runtime()?.block_on(server)
}

/// Adds a console to a demo and leaves access lines out of its log, unless these are configured. Returns whether any
/// port will do for the console if the default is taken.
fn for_demo(settings: Settings, demo: bool) -> (Settings, bool) {
    let default = |name: &'static str, value: &str| {
        let is_default = demo && settings.get(name).origin == SettingOrigin::Default;
        is_default.then(|| value.to_owned())
    };
    let (console, log) = (default("console.listen", DEMO_CONSOLE), default("log", DEMO_LOG));
    let any_port = console.is_some();
    let settings = settings.with_flag("console.listen", demo::DEMO_ORIGIN, console);
    (settings.with_flag("log", demo::DEMO_ORIGIN, log), any_port)
}

async fn serve(invocation: &Invocation, config: Config, extras: ServeOptions) -> anyhow::Result<()> {
    let is_demo = extras.is_demo();
    let (stop, hurry) = signals()?;
    let mut stop = std::pin::pin!(stop);
    let setup = Setup::of(&config)?;
    if let Some(cluster) = &config.cluster {
        tokio::select! {
            joined = join_cluster(&invocation.data, &setup, cluster) => joined?,
            () = &mut stop => return Ok(()),
        }
    }
    let listener = bind(config.listen)?;
    let address = listener.local_addr()?;
    let base = base_url(&config, address);
    let server = Server::open(invocation.data.clone(), config, setup)?;
    let ready = async |server: &Server, console: Option<&ConsoleSessions>| {
        let announced = if is_demo {
            demo::show(invocation, server, &base, console).await
        } else {
            listening(invocation.output, &base, console).await
        };
        if let Err(error) = announced {
            tracing::warn!(%error, "failed to print the server's address");
        }
    };
    server.serve(listener, extras, ready, stop, hurry).await?;
    Ok(())
}

/// Prints the line that scripts wait for.
async fn listening(output: Output, base: &str, console: Option<&ConsoleSessions>) -> anyhow::Result<()> {
    let console = console.map(ConsoleSessions::base);
    let addresses = json!({ "url": base, "console_url": console });
    let text = output.format(&addresses, |_| {
        let console = console.map(|console| format!("console on {console}\n")).unwrap_or_default();
        format!("listening on {base}\n{console}")
    })?;
    output::announce(text).await
}
