//! Mistakes in a catalogue file, and a file on top of the built-in one.

use super::*;

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

const SPORT: &str = "sports = [{ key = \"mma\", title = \"MMA\", group = \"combat\", kind = \"fight\" }]\n";

#[test]
fn builtin_catalogue_covers_every_region() {
    let catalogue = builtin();
    let keys: Vec<&str> = catalogue.sports().map(|(_, sport)| &*sport.key).collect();
    assert_eq!(keys[..5], ["mma", "boxing", "tennis", "american_football", "golf"]);
    assert_eq!(keys.len(), 16);
    assert_eq!(catalogue.groups()[..4], ["combat", "tennis", "american_football", "golf"]);
    assert!(catalogue.bookmakers().len() >= 94);
    for region in Region::ALL {
        let books = catalogue.bookmakers().iter().filter(|book| book.regions.contains(region)).count();
        assert!(books >= 4, "{region}: {books}");
    }
    assert_eq!(catalogue.competitions().count(), 177);
    assert_eq!(catalogue.find_v4("soccer_epl").map(|(sport, _)| sport), catalogue.find("soccer"));
}

#[test]
fn unknown_field_is_reported_with_its_line() {
    let text = format!("{SPORT}bookmakers = [\n  {{ key = \"a\", title = \"A\", region = [\"us\"] }},\n]");
    let error = error(&text);
    assert!(error.contains("line 3") && error.contains("`region`"), "{error}");
}

#[test]
fn unknown_region_is_reported_with_the_known_ones() {
    let text = format!("{SPORT}bookmakers = [\n\n  {{ key = \"a\", title = \"A\", regions = [\"usa\"] }},\n]");
    let error = error(&text);
    for part in ["line 4", "`usa`", "`us`", "`uk`", "`eu`", "`au`"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn duplicate_key_is_reported_with_its_second_line() {
    let line = "  { key = \"a\", title = \"A\", regions = [\"us\"] },\n";
    let error = error(&format!("{SPORT}bookmakers = [\n{line}{line}]"));
    assert_eq!(error, "the catalogue, line 4: bad field `key`: the key \"a\" is listed twice");
}

#[test]
fn invalid_entry_is_reported_with_its_field() {
    for (entry, part) in [
        ("{ key = \"A\", title = \"A\", regions = [\"us\"] }", "\"A\" is not a valid key"),
        ("{ key = \"a\", title = \" \", regions = [\"us\"] }", "`title`"),
        ("{ key = \"a\", title = \"A\", regions = [] }", "`regions`"),
        ("{ key = \"a\", title = \"A\", regions = [\"us\", \"us\"] }", "region us twice"),
    ] {
        let error = error(&format!("{SPORT}bookmakers = [\n{entry}]"));
        assert!(error.contains(part) && error.contains("line 3"), "{error}");
    }
    for v4 in ["key = \"mma_*\", group = \"MMA\", title = \"MMA\"", "key = \"M\", group = \"MMA\", title = \"MMA\""] {
        let error = error(&SPORT.replace("kind", &format!("v4 = {{ {v4} }}, kind")));
        assert!(error.contains("`v4`"), "{error}");
    }
    assert!(error("replace = true").contains("no sport"));
    assert!(error(&SPORT.replace("fight", "duel")).contains("`head_to_head`"));
}

/// The keys of the sports, competitions and bookmakers.
fn keys(catalogue: &Catalogue) -> [Vec<&str>; 3] {
    [
        catalogue.sports().map(|(_, sport)| &*sport.key).collect(),
        catalogue.competitions().map(|listed| &*listed.key).collect(),
        catalogue.bookmakers().iter().map(|book| &*book.key).collect(),
    ]
}

#[test]
fn lines_of_a_file_are_added_or_override_by_key() {
    let text = r#"
        sports = [
          { key = "chess", title = "Chess", group = "mind_sports", kind = "head_to_head" },
          { key = "mma", title = "Mixed Martial Arts", group = "combat", kind = "fight" },
        ]
        competitions = [{ key = "soccer_epl", title = "The League" }]
        market_families = [{ key = "outright", shape = "field", winners = 2 }]
        props.over_only = ["player_points"]
        bookmakers = [{ key = "betmgm", title = "MGM", regions = ["uk"] }, { key = "mine", title = "Mine", regions = ["fr"] }]
    "#;
    let (below, with) = (builtin(), parse(text).unwrap());
    let [mut sports, mut competitions, mut books] = keys(&below);
    sports.push("chess");
    books.push("mine");
    // Without names in The Odds API, a sport has no competitions of it.
    competitions.retain(|key| !key.starts_with("mma_"));
    assert_eq!(keys(&with), [sports, competitions, books]);
    assert_eq!(&*with[with.find("mma").unwrap()].title, "Mixed Martial Arts");
    assert_eq!(&*with.competition("soccer_epl").unwrap().title, "The League");
    assert_eq!(with.markets().traits("outright").unwrap().settlement.winners, 2);
    assert_eq!(with.markets().traits("player_points").unwrap().shape.key(), "over_only");
    assert_eq!(with.markets().traits("player_assists"), below.markets().traits("player_assists"));
    let book = with.bookmakers().iter().find(|book| &*book.key == "betmgm").unwrap();
    assert_eq!((&*book.title, book.regions.contains(Region::Us)), ("MGM", false));

    let changed = changes(text).unwrap();
    assert_eq!(
        (&changed.sports.added[..], &changed.sports.overridden[..]),
        (&["chess".into()][..], &["mma".into()][..])
    );
    assert_eq!((changed.competitions.added.len(), changed.competitions.overridden.len()), (0, 1));
    assert_eq!((changed.market_families.overridden.len(), changed.props.overridden.len()), (1, 1));
    assert_eq!((changed.bookmakers.added.len(), changed.bookmakers.overridden.len()), (1, 1));
}

#[test]
fn empty_file_changes_nothing() {
    assert_eq!(keys(&parse("").unwrap()), keys(&builtin()));
}

#[test]
fn file_that_replaces_stands_alone() {
    let catalogue = parse(&format!("replace = true\n{SPORT}")).unwrap();
    assert_eq!(keys(&catalogue), [vec!["mma"], vec![], vec![]]);
    assert_eq!(catalogue.markets().families().count(), 0);
    assert!(changes(&format!("replace = true\n{SPORT}")).unwrap().replace);
}

#[test]
fn families_become_sports_unless_there_are_such() {
    let catalogue = parse("families = [\"darts\", \"soccer\", \"icehockey\"]").unwrap();
    assert_eq!(catalogue.sport_count(), builtin().sport_count() + 1);
    let darts = catalogue.find("darts").unwrap();
    assert_eq!((&*catalogue[darts].title, &*catalogue[darts].group), ("Darts", "darts"));
    assert_eq!(catalogue.find_v4("darts_pdc").map(|(sport, _)| sport), Some(darts));
    let error = error("\nfamilies = [\"darts_pdc\"]");
    assert!(error.contains("line 2") && error.contains("first word"), "{error}");
}

#[test]
fn families_are_added_to_those_of_a_file() {
    let text =
        with_families("# mine\nfamilies = [\"darts\"]\n[props]\nover_only = [\"player_aces\"]", &["padel"]).unwrap();
    let catalogue = parse(&text).unwrap();
    assert!(catalogue.find("darts").is_some() && catalogue.find("padel").is_some(), "{text}");
    assert_eq!(catalogue.markets().traits("player_aces").unwrap().shape.key(), "over_only");
    assert!(parse(&with_families("", &["padel"]).unwrap()).unwrap().find("padel").is_some());
}
