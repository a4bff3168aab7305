use clap::{CommandFactory, Parser};

use super::*;

fn parse(line: &str) -> Result<Cli, i32> {
    Cli::try_parse_from(line.split(' ')).map_err(|error| error.exit_code())
}

#[test]
fn command_definitions_are_valid() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_says_whether_it_is_safe_on_a_running_server() {
    fn leaves(command: &clap::Command, found: &mut Vec<(String, String)>) {
        if command.get_subcommands().next().is_none() {
            let help = command.get_long_about().map(ToString::to_string).unwrap_or_default();
            found.push((command.get_name().to_owned(), help));
        }
        command.get_subcommands().for_each(|command| leaves(command, found));
    }
    let mut found = Vec::new();
    leaves(&Cli::command(), &mut found);
    assert!(found.len() >= 18, "{found:?}");
    for (name, help) in found {
        let says = [
            "Safe on a running server",
            "Needs no server",
            "One server at a time",
            "not those of a running server",
            "Refuses while a server runs",
        ];
        assert!(says.iter().any(|part| help.replace('\n', " ").contains(part)), "{name}: {help}");
    }
}

#[test]
fn global_flags_are_accepted_before_and_after_the_command() {
    let lines = ["oddsbox --json --data d keys list", "oddsbox keys list --json --data d"];
    for line in lines.into_iter().chain(["oddsbox demo --json --data d clear", "oddsbox demo clear --data d --json"]) {
        let cli = parse(line).unwrap();
        assert!(cli.json);
        assert_eq!(cli.data, Some(PathBuf::from("d")));
    }
}

#[test]
fn wrong_usage_exits_with_2_and_help_with_0() {
    for line in ["oddsbox", "oddsbox fly", "oddsbox ingest", "oddsbox ingest f --world mars", "oddsbox maintenance"] {
        assert_eq!(parse(line).unwrap_err(), 2, "{line}");
    }
    for line in ["oddsbox maintenance on --for soon", "oddsbox audit --follow --json", "oddsbox completions cmd"] {
        assert_eq!(parse(line).unwrap_err(), 2, "{line}");
    }
    assert_eq!(parse("oddsbox --help").unwrap_err(), 0);
    assert_eq!(parse("oddsbox --version").unwrap_err(), 0);
}

#[test]
fn ingest_reads_a_file_or_standard_input() {
    for line in ["oddsbox ingest -", "oddsbox ingest feed.ndjson --world sandbox --strict"] {
        assert!(matches!(parse(line).unwrap().command, CliCommand::Ingest(_)), "{line}");
    }
}

#[test]
fn manual_pages_document_environment_and_exit_status() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Cli::command();
    command.build();
    about::write_pages(&command, dir.path()).unwrap();
    for name in ["oddsbox.1", "oddsbox-keys.1", "oddsbox-keys-issue.1"] {
        let page = std::fs::read_to_string(dir.path().join(name)).unwrap();
        for part in ["ODDSBOX_DATA", "EXIT STATUS", concat!("oddsbox ", env!("CARGO_PKG_VERSION"))] {
            assert!(page.contains(part), "{name} has no {part}");
        }
    }
}

#[test]
fn shells_complete_worlds_and_directories() {
    let mut script = Vec::new();
    clap_complete::generate(clap_complete::Shell::Zsh, &mut Cli::command(), "oddsbox", &mut script);
    let script = String::from_utf8(script).unwrap();
    assert!(script.contains(":WORLD:(sandbox live)"), "the names of the worlds");
    assert!(script.contains(":DIR:_files -/"), "directories for --data");
}

/// Every command with its words: `keys issue`.
fn all_commands(command: &clap::Command, words: &str, found: &mut Vec<(String, clap::Command)>) {
    found.push((words.to_owned(), command.clone()));
    for inner in command.get_subcommands() {
        all_commands(inner, format!("{words} {}", inner.get_name()).trim(), found);
    }
}

/// The arguments of a line of a shell, without what the shell itself reads: variables in front, pipes and redirections.
fn words_of(line: &str) -> Vec<&str> {
    let words = line.split_whitespace().skip_while(|word| word.contains('='));
    words.take_while(|word| !["|", "<", ">"].contains(word)).collect()
}

#[test]
fn every_command_has_examples_that_parse() {
    let mut commands = Vec::new();
    all_commands(&Cli::command(), "", &mut commands);
    assert!(commands.len() > 25, "{commands:?}");
    for (name, command) in commands {
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.strip_prefix("Examples:\n").unwrap_or_else(|| panic!("`{name}` has no examples"));
        for line in lines.lines() {
            assert!(line.starts_with("  ") && line.len() <= 80, "wraps on a terminal: {line:?}");
            for part in line.split(" | ") {
                let words = words_of(part);
                assert_eq!(words[0], "oddsbox", "{line}");
                match Cli::try_parse_from(&words).and_then(Cli::checked) {
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.exit_code(), 0, "{line}: {error}"),
                }
            }
            assert!(line.contains(&format!("oddsbox {name}")) || line.contains("--data"), "`{name}` has {line}");
        }
    }
}

#[test]
fn help_lists_the_groups_of_the_built_in_catalogue() {
    let groups = crate::config::catalogue::builtin().groups().join(", ");
    let mut commands = Vec::new();
    all_commands(&Cli::command(), "", &mut commands);
    for name in ["keys issue", "keys set"] {
        let (_, command) = commands.iter().find(|(words, _)| words == name).unwrap();
        let argument = command.get_arguments().find(|argument| argument.get_id() == "groups").unwrap();
        let help = argument.get_help().unwrap().to_string();
        assert!(help.contains(&groups), "{name} lists other groups than {groups}: {help}");
    }
}

#[test]
fn options_of_every_command_stand_between_a_command_and_its_subcommand() {
    for line in ["oddsbox feeds --data d tokens", "oddsbox feeds --json token scraper", "oddsbox demo --data d clear"] {
        assert!(parse(line).is_ok(), "{line}");
    }
    for line in ["oddsbox feeds --stale tokens", "oddsbox feeds --world live token x", "oddsbox demo --listen a clear"]
    {
        assert_eq!(
            parse(line).and_then(|cli| cli.checked().map_err(|error| error.exit_code())).unwrap_err(),
            2,
            "{line}"
        );
    }
}

#[test]
fn what_others_have_named_controls_no_terminal() {
    let output = output::Output::new(false);
    let hostile = "b\u{1b}]0;title\u{7}\nc\t10.0 s\u{202e}".to_owned();
    let table =
        output.table(&["NODE", "LEASE"], &[vec!["a".to_owned(), "-".to_owned()], vec![hostile, "-".to_owned()]]);
    assert_eq!(table.lines().count(), 3, "{table:?}");
    let line = output.diagnostic_line("error", "the engine refuses: \u{1b}[2J");
    assert_eq!(line, "error: the engine refuses: \\u{1b}[2J");
    assert!(!format!("{table}{line}").contains(['\u{1b}', '\u{7}', '\u{202e}']), "{table:?}");
}
