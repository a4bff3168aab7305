//! A key that its holder rotates: the rotation survives kill -9, and the operator takes it back, with a server and without.

use oddsbox::admin::{Command, IssueKey, KeyAnswer};
use serde_json::json;

use super::client::{Connection, get};
use super::command::{Directory, Issued, Server, issue, sandbox};

pub async fn rotate(server: &Server, key: &Issued) -> Issued {
    let request = format!(
        "POST /account/rotate HTTP/1.1\r\nhost: oddsbox\r\nauthorization: Bearer {}\r\ncontent-length: 0\r\n\r\n",
        key.secret
    );
    let mut connection = Connection::open(server.address()).await.expect("a connection");
    let answer = connection.send(&request).await.expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    let secret = answer.json()["key"].as_str().expect("a secret").to_owned();
    Issued { id: key.id.clone(), secret }
}

async fn status(server: &Server, key: &Issued) -> u16 {
    get(server.address(), "/v1/status", &key.secret).await.status
}

#[tokio::test]
async fn rotation_by_the_holder_survives_a_kill() {
    let directory = Directory::new();
    let mut server = directory.serve_with(&[("ODDSBOX_LOG", "warn")]);
    for _ in 0..5 {
        let access = directory.access().await;
        let first = issue(&access, IssueKey { self_service: true, ..sandbox(1_000) }).await.expect("a key");
        let second = rotate(&server, &first).await;
        server.kill();
        server = directory.serve_with(&[("ODDSBOX_LOG", "warn")]);
        assert_eq!((status(&server, &first).await, status(&server, &second).await), (200, 200));
        let access = directory.access().await;
        let undone: KeyAnswer =
            access.ask(Command::KeysRotateUndo { id: first.id.clone() }).await.expect("an undone rotation");
        assert_eq!((undone.old_secret_until, undone.undo_until), (None, None));
        server.kill();
        server = directory.serve_with(&[("ODDSBOX_LOG", "warn")]);
        assert_eq!((status(&server, &first).await, status(&server, &second).await), (200, 401));
    }
    server.stop();
}

#[tokio::test]
async fn operator_allows_shows_and_undoes_what_the_holder_does() {
    let directory = Directory::new();
    let first = Issued::from(&directory.json("keys issue --sandbox --name app --self-service"));
    let shown = |line: &str| directory.json(line);
    assert_eq!(shown("keys show app")["self_service"], json!(true));
    assert_eq!(shown("keys set app --self-service false")["self_service"], json!(false));
    assert_eq!(shown("keys set app --self-service true")["self_service"], json!(true));
    let listed = directory.run("keys list").succeeded().stdout;
    assert!(listed.contains("SELF-SERVICE") && listed.contains("yes"), "{listed}");
    let server = directory.serve();
    let second = rotate(&server, &first).await;
    let key = shown("keys show app");
    assert!(key["undo_until"].is_string() && key["undo_until"] == key["old_secret_until"], "{key}");
    let text = directory.run("keys rotate app --undo").succeeded().stdout;
    let hint = format!("sk_test_ob_…{}", &first.secret[first.secret.len() - 4..]);
    assert!(text.contains("is undone") && text.contains(&hint), "{text}");
    assert_eq!((status(&server, &first).await, status(&server, &second).await), (200, 401));
    let refused = directory.run("keys rotate app --undo").failed();
    assert!(refused.contains("can be undone"), "{refused}");

    // On a closed file as well.
    let third = Issued::from(&directory.json("keys rotate app --grace 1h"));
    server.stop();
    let undone = shown("keys rotate app --undo");
    assert_eq!((&undone["hint"], undone.get("key")), (&json!(hint), None), "no secret is shown");
    let server = directory.serve();
    assert_eq!((status(&server, &first).await, status(&server, &third).await), (200, 401));
    let audit = directory.run("audit").succeeded().stdout;
    assert!(audit.contains(&format!("{} (127.0.0.1)", first.id)), "{audit}");
    assert_eq!(audit.matches("undo rotation").count(), 2, "{audit}");
    server.stop();
}
