//! The engine behind TLS, a user and a password.

use std::fs;

use super::engine::RedisServer;
use super::nodes::Node;
use crate::harness::tls::Certificates;

const PASSWORD: &str = "hush-4f1c";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_is_reached_over_tls_with_a_user_and_a_password_that_is_never_logged() {
    let test = "engine_is_reached_over_tls_with_a_user_and_a_password_that_is_never_logged";
    let (certificates, _) = Certificates::made();
    let (chain, key) = (certificates.chain(), certificates.key());
    let password = format!(">{PASSWORD}");
    let arguments = [
        "--tls-port",
        "PORT",
        "--tls-cert-file",
        &chain,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &chain,
        "--tls-auth-clients",
        "no",
        "--requirepass",
        "of-the-default-user",
        "--user",
        "cluster",
        "on",
        &password,
        "~oddsbox",
        "~oddsbox:*",
        "+@all",
        "-@dangerous",
        "+info",
    ];
    let Some(engine) = RedisServer::start_with(test, &arguments) else { return };
    let files = tempfile::tempdir().expect("a directory");
    let password = files.path().join("password");
    fs::write(&password, format!("{PASSWORD}\n")).expect("a file");
    let password = password.display().to_string();
    let url = format!("rediss://localhost:{}", engine.port());
    let variables = [
        ("ODDSBOX_CLUSTER_URL", url.as_str()),
        ("ODDSBOX_CLUSTER_USER", "cluster"),
        ("ODDSBOX_CLUSTER_PASSWORD_FILE", &password),
        ("ODDSBOX_CLUSTER_CA", &chain),
        ("ODDSBOX_LOG", "trace"),
    ];
    let mut node = Node::new(&engine, "a", &variables);
    node.run("cluster init").succeeded();
    node.serve();
    let key = node.issue("");
    assert_eq!(node.get("/v1/sports", &key).await.status, 200);
    let shown = node.run("config show").succeeded().stdout;
    let log = node.stop();
    assert!(!log.contains(PASSWORD) && !shown.contains(PASSWORD), "{log}");

    fs::write(files.path().join("password"), "another").expect("a file");
    let refused = node.refused();
    assert!(refused.contains("authentication failed") && !refused.contains("another"), "{refused}");
    let untrusted = Node::new(&engine, "b", &[("ODDSBOX_CLUSTER_URL", &url)]);
    let refused = untrusted.run("cluster init").failed();
    assert!(refused.contains("ertificate"), "{refused}");
}
