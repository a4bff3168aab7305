use super::*;

fn gather(file: &str, variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::defaults(SETTINGS).with_file(Path::new("oddsbox.toml"), file)?.with_variables(
        SETTINGS,
        OTHER_VARIABLES,
        variables,
    )
}

#[test]
fn every_default_is_valid() {
    let config = Settings::defaults(SETTINGS).read().unwrap();
    assert_eq!(config.connections_per_address, Some(256));
    assert_eq!(config.refresh, Duration::from_secs(30));
    assert_eq!(config.retention, Duration::from_secs(72 * 3600));
}

#[test]
fn flag_overrides_variable_overrides_file() {
    let settings = gather(
        "refresh = \"10s\"\nretention = \"1h\"\nstale_after = \"5m\"",
        &[("ODDSBOX_REFRESH", "20s"), ("ODDSBOX_LISTEN", "127.0.0.1:1"), ("ODDSBOX_DATA", "elsewhere")],
    )
    .unwrap()
    .with_flag("listen", "--listen", Some("127.0.0.1:2".to_owned()))
    .with_flag("refresh", "--refresh", None);
    let config = settings.read().unwrap();
    assert_eq!((config.refresh.as_secs(), config.retention.as_secs()), (20, 3600));
    assert_eq!(config.listen.port(), 2);
    assert_eq!(settings.get("listen").origin.to_string(), "--listen");
    assert_eq!(settings.get("refresh").origin.to_string(), "ODDSBOX_REFRESH");
    assert_eq!(settings.get("stale_after").origin.to_string(), "oddsbox.toml");
    assert_eq!(settings.get("log").origin.to_string(), "default");
}

#[test]
fn unknown_setting_suggests_the_nearest() {
    let error = |result: Result<Settings, ConfigError>| result.unwrap_err().to_string();
    assert_eq!(
        error(gather("log = \"info\"\nrefersh = \"10s\"", &[])),
        "oddsbox.toml: line 2: there is no setting refersh; did you mean refresh?"
    );
    assert_eq!(
        error(gather("\n[simulator]\nsed = 1", &[])),
        "oddsbox.toml: line 3: there is no setting simulator.sed; did you mean simulator.seed?"
    );
    assert_eq!(
        error(gather("simulator = { sed = 1 }", &[])),
        "oddsbox.toml: line 1: there is no setting simulator.sed; did you mean simulator.seed?"
    );
    assert_eq!(error(gather("\"a.b\" = 1", &[])), "oddsbox.toml: there is no setting a.b");
    assert_eq!(
        error(gather("", &[("ODDSBOX_REFESH", "1s")])),
        "there is no setting ODDSBOX_REFESH; did you mean ODDSBOX_REFRESH?"
    );
}

const FEED: &str = "[feeds.us]\nkind = \"the-odds-api\"\nurl = \"http://localhost:1/v4\"\nkey = \"hush\"\n\
    sports = [\"mma\", \"tennis\"]\n";

#[test]
fn feed_is_read_from_a_table_and_from_variables() {
    let settings = gather(
        FEED,
        &[
            ("ODDSBOX_FEEDS_US_INTERVAL", "90s"),
            ("ODDSBOX_FEEDS_EU_2_KIND", "the-odds-api"),
            ("ODDSBOX_FEEDS_EU_2_URL", "https://example.test/v4"),
            ("ODDSBOX_FEEDS_EU_2_KEY_FILE", "key.txt"),
            ("ODDSBOX_FEEDS_EU_2_SPORTS", "golf"),
            ("ODDSBOX_FEEDS_EU_2_REQUESTS_PER_DAY", "500"),
        ],
    )
    .unwrap();
    let config = settings.read().unwrap();
    let [eu, us] = &config.feeds[..] else { panic!("{:?}", config.feeds) };
    assert_eq!((&*us.name, us.interval.as_secs(), us.sports.join(" ")), ("us", 90, "mma tennis".to_owned()));
    assert_eq!(us.key, FeedKey::Text(FeedSecret::new("hush")));
    assert_eq!((&*eu.name, &eu.key, eu.requests_per_day), ("eu_2", &FeedKey::File("key.txt".into()), Some(500)));
    assert_eq!(us.markets, ["h2h", "spreads", "totals", "outrights"]);
    assert_eq!((us.event_markets.len(), us.event_horizon.as_secs()), (0, 24 * 3600));

    let shown = settings.feeds_shown();
    let value = |name: &str| shown.iter().find(|field| field.name == name).unwrap().value.clone();
    assert_eq!(value("feeds.us.key").text, "(hidden)");
    assert_eq!(value("feeds.us.interval").origin.to_string(), "ODDSBOX_FEEDS_US_INTERVAL");
    assert_eq!(value("feeds.eu_2.regions").origin.to_string(), "default");
    assert!(!format!("{settings:?} {config:?} {shown:?}").contains("hush"));
}

#[test]
fn invalid_feed_is_reported_with_its_field() {
    let error = |file: &str, variables: &[(&str, &str)]| {
        gather(file, variables).and_then(|settings| settings.read()).unwrap_err().to_string()
    };
    assert_eq!(
        error("[feeds.us]\nintervall = \"1s\"", &[]),
        "oddsbox.toml: line 2: there is no setting feeds.us.intervall; did you mean feeds.us.interval?"
    );
    assert_eq!(
        error("", &[("ODDSBOX_FEEDS_US_RGEIONS", "us")]),
        "there is no setting ODDSBOX_FEEDS_US_RGEIONS; did you mean ODDSBOX_FEEDS_US_REGIONS?"
    );
    assert_eq!(error("[feeds.us]\nurl = \"x\"", &[]), "feeds.us.kind is missing: takes the-odds-api");
    let message = error(&FEED.replace("http://localhost:1/v4", "ftp://x"), &[]);
    assert!(message.starts_with("feeds.us.url = \"ftp://x\" (from oddsbox.toml): takes an address"), "{message}");
    let message = error(&format!("{FEED}key_file = \"k\""), &[]);
    assert!(message.contains("feeds.us.key is given, and key_file as well") && !message.contains("hush"), "{message}");
    assert!(error("[feeds.US]\nkind = \"x\"", &[]).starts_with("oddsbox.toml: line 2: feeds.US: a feed's name has"));
    assert!(error(&format!("{FEED}regions = [1]"), &[]).contains("must be a string"));
    assert_eq!(
        error(&format!("{FEED}markets = []"), &[]),
        "feeds.us.markets is empty, and event_markets as well: name at least one market"
    );
}

#[test]
fn address_of_an_engine_has_no_password_and_one_that_has_is_not_repeated() {
    for url in [
        "redis://:hush@10.0.0.5:6379",
        "rediss://user:hush@redis.example",
        "redis+unix:///run/redis.sock?user=u&pass=hush",
        "redis+unix:///run/redis.sock?Password=hush",
        "redis:/:hush@10.0.0.5",
        "user:hush@10.0.0.5:6379",
    ] {
        let settings = gather("", &[("ODDSBOX_CLUSTER_URL", url)]).unwrap();
        let refused = settings.read().unwrap_err().to_string();
        assert!(refused.contains("takes no user and no password") && !refused.contains("hush"), "{refused}");
        assert!(!settings.shown("cluster.url").text.contains("hush"), "{url}");
    }
    let settings = gather("", &[("ODDSBOX_CLUSTER_URL", "redis://10.0.0.5:6379")]).unwrap();
    assert_eq!(settings.shown("cluster.url").text, "redis://10.0.0.5:6379");
    assert!(settings.read().unwrap().cluster.is_some());
}

#[test]
fn monitoring_address_must_be_on_loopback() {
    let read = |address: &str| gather(&format!("[admin]\nlisten = \"{address}\""), &[]).unwrap().read();
    for address in ["127.0.0.1:9100", "127.1.2.3:0", "[::1]:9100"] {
        assert_eq!(read(address).unwrap().admin_listen, address.parse().ok());
    }
    for address in ["0.0.0.0:9100", "192.0.2.1:9100", "[::]:9100", "localhost:9100", "127.0.0.1"] {
        let error = read(address).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "admin.listen = {address:?} (from oddsbox.toml): takes an address and port on this machine's \
                 loopback, such as 127.0.0.1:9100, or nothing"
            )
        );
    }
}

#[test]
fn certificate_and_key_must_be_set_together() {
    let error = |file: &str| gather(file, &[]).unwrap().read().unwrap_err().to_string();
    assert_eq!(
        error("tls.certificate = \"chain.pem\""),
        "tls.key = \"\" (from default): takes a PEM file, as tls.certificate is set: set both or neither"
    );
    assert_eq!(
        error("[tls]\ncertificate = \"\"\nkey = \"key.pem\""),
        "tls.certificate = \"\" (from oddsbox.toml): takes a PEM file, as tls.key is set: set both or neither"
    );
    let both = gather("tls.certificate = \"chain.pem\"\ntls.key = \"key.pem\"", &[]).unwrap().read().unwrap();
    assert_eq!(both.tls, Some(TlsFiles { certificate: "chain.pem".into(), key: "key.pem".into() }));
    assert_eq!(both.scheme(), "https");
}

#[test]
fn variables_of_clients_are_ignored() {
    let clients = [("ODDSBOX_KEY", "sk_test_ob_x"), ("ODDSBOX_URL", "http://127.0.0.1:8080")];
    assert!(gather("", &clients).unwrap().iter().all(|(_, value)| value.origin == SettingOrigin::Default));
}

#[test]
fn invalid_value_is_reported_with_its_origin_and_the_allowed_values() {
    let error = gather("refresh = \"soon\"", &[]).unwrap().read().unwrap_err().to_string();
    assert_eq!(error, "refresh = \"soon\" (from oddsbox.toml): takes a duration such as 30s or 24h, from 1s to 1h");
    let error = gather("connections = 0", &[]).unwrap().read().unwrap_err().to_string();
    assert_eq!(error, "connections = \"0\" (from oddsbox.toml): takes a whole number from 1 to 1000000");
    let error = gather("refresh = [1]", &[]).unwrap_err().to_string();
    assert_eq!(error, "oddsbox.toml: line 1: refresh must be a string, a number or true/false");
    assert!(gather("refresh =", &[]).unwrap_err().to_string().starts_with("oddsbox.toml: "));
}

#[test]
fn trusted_proxies_is_a_list_of_addresses_and_networks() {
    let read = |file: &str, variables: &[(&str, &str)]| gather(file, variables).unwrap().read();
    assert!(read("", &[]).unwrap().trusted_proxies.is_empty());
    assert!(read("trusted_proxies = []", &[]).unwrap().trusted_proxies.is_empty());
    let listed = read("trusted_proxies = [\"10.0.0.0/8\", \"::1\"]", &[]).unwrap().trusted_proxies;
    assert_eq!(listed.to_string(), "10.0.0.0/8,::1/128");
    let variable = read("", &[("ODDSBOX_TRUSTED_PROXIES", "192.0.2.1, 10.0.0.0/8")]).unwrap().trusted_proxies;
    assert_eq!(variable.to_string(), "192.0.2.1/32,10.0.0.0/8");
    assert_eq!(
        read("trusted_proxies = \"caddy\"", &[]).unwrap_err().to_string(),
        "trusted_proxies = \"caddy\" (from oddsbox.toml): takes IP addresses and networks such as 10.0.0.0/8 or ::1, separated \
         by commas"
    );
}
