//! The two keys of a demo. Their secrets are kept in a file beside its data, so that every start can show them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::admin::{DataDir, SecretText};
use crate::keys::issue::NewKey;
use crate::keys::{KeyKind, Limits};
use crate::server::{DEMO, Server};

/// The secrets of both keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DemoKeys {
    pub(super) sandbox: SecretText,
    pub(super) live: SecretText,
}

/// The keys of the last start. One that is missing, or that does not open any more, is issued.
pub(super) async fn keys(data: &DataDir, server: &Server) -> anyhow::Result<DemoKeys> {
    let path = data.demo_keys();
    let kept = read(&path);
    let sandbox = working(kept.as_ref().map(|keys| &keys.sandbox), KeyKind::Sandbox, server).await?;
    let live = working(kept.as_ref().map(|keys| &keys.live), KeyKind::Production, server).await?;
    let keys = DemoKeys { sandbox, live };
    if kept.as_ref() != Some(&keys)
        && let Err(error) = write(&path, &keys)
    {
        tracing::warn!(path = %path.display(), %error, "failed to keep the demo's keys; the next start issues new ones");
    }
    Ok(keys)
}

/// A file that cannot be read, or says something else, is as good as none.
fn read(path: &Path) -> Option<DemoKeys> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Written aside and renamed, so that it is never half a file. Only its owner can read it.
fn write(path: &Path, keys: &DemoKeys) -> io::Result<()> {
    let partial = path.with_extension("json.partial");
    let _ = fs::remove_file(&partial);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    file.write_all(&serde_json::to_vec(keys)?)?;
    file.write_all(b"\n")?;
    fs::rename(partial, path)
}

/// The secret that was kept if it opens its world, else that of a new key.
async fn working(kept: Option<&SecretText>, kind: KeyKind, server: &Server) -> anyhow::Result<SecretText> {
    if let Some(kept) = kept {
        let grant = server.keyring().authenticate(Some(kept.expose()), server.clock().now());
        if grant.is_ok_and(|grant| grant.record().kind == kind) {
            return Ok(kept.clone());
        }
    }
    let approved_by = (kind == KeyKind::Production).then(|| DEMO.into());
    let limits = Limits::default_of(kind);
    let new = NewKey { kind, name: "demo".into(), groups: Vec::new(), limits, expires: None, approved_by };
    let issued = server.writer().issue_key(new, DEMO).await?;
    Ok(SecretText::new(issued.secret.expose()))
}
