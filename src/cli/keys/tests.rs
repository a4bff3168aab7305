use clap::Parser;

use super::super::{Cli, CliCommand};
use super::*;

fn parse(line: &str) -> Result<KeysCommand, clap::error::ErrorKind> {
    let cli =
        Cli::try_parse_from(["oddsbox", "keys"].into_iter().chain(line.split(' '))).map_err(|error| error.kind())?;
    match cli.command {
        CliCommand::Keys(keys) => Ok(keys),
        other => panic!("{other:?}"),
    }
}

fn command(line: &str) -> Command {
    match parse(line).unwrap() {
        KeysCommand::Issue(issue) => issue.command(),
        KeysCommand::Set(set) => set.command(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn omitted_flags_use_the_defaults_of_the_kind() {
    let expected = IssueKey {
        kind: "sandbox".into(),
        name: "app".into(),
        approved_by: None,
        groups: Vec::new(),
        burst_per_minute: None,
        requests_per_day: FieldSetting::Keep,
        requests_per_month: FieldSetting::Keep,
        streams: None,
        expires_in_s: None,
        self_service: false,
    };
    assert_eq!(command("issue --sandbox --name app"), Command::KeysIssue(expected));
}

#[test]
fn issue_passes_on_every_flag() {
    let line = "issue --live --name app --approved-by ada --groups combat,golf --burst 5 --per-day none --per-month 9 --expires 90d --self-service";
    let expected = IssueKey {
        kind: "production".into(),
        name: "app".into(),
        approved_by: Some("ada".into()),
        groups: vec!["combat".into(), "golf".into()],
        burst_per_minute: Some(5),
        requests_per_day: FieldSetting::Remove,
        requests_per_month: FieldSetting::To(9),
        streams: None,
        expires_in_s: Some(90 * 86_400),
        self_service: true,
    };
    assert_eq!(command(line), Command::KeysIssue(expected));
}

#[test]
fn set_passes_on_every_flag() {
    let line = "set key_x --name n --groups none --burst 7 --per-day 5 --per-month none --expires never --self-service false --reset-usage";
    let expected = SetKey {
        id: "key_x".into(),
        name: Some("n".into()),
        groups: Some(Vec::new()),
        burst_per_minute: Some(7),
        requests_per_day: FieldSetting::To(5),
        requests_per_month: FieldSetting::Remove,
        streams: None,
        expires_in_s: FieldSetting::Remove,
        self_service: Some(false),
        reset_usage: true,
    };
    assert_eq!(command(line), Command::KeysSet(expected));
}

#[test]
fn wrong_usage_is_rejected_by_the_parser() {
    use clap::error::ErrorKind::{ArgumentConflict, InvalidValue, MissingRequiredArgument, ValueValidation};
    let wrong = [
        ("issue --name app", MissingRequiredArgument),
        ("issue --sandbox", MissingRequiredArgument),
        ("issue --sandbox --live --name app --approved-by ada", ArgumentConflict),
        ("issue --live --name app", MissingRequiredArgument),
        ("issue --sandbox --name app --burst 0", ValueValidation),
        ("issue --sandbox --name app --per-day 0", ValueValidation),
        ("issue --sandbox --name app --expires soon", ValueValidation),
        ("set key_x", MissingRequiredArgument),
        ("rotate key_x --grace 1", ValueValidation),
        ("rotate key_x --undo --grace 1h", ArgumentConflict),
        ("set key_x --self-service maybe", InvalidValue),
        ("revoke", MissingRequiredArgument),
    ];
    for (line, kind) in wrong {
        assert_eq!(parse(line).unwrap_err(), kind, "{line}");
    }
}
