//! Who acts: the name of a user of this machine, as the audit log keeps it.

use std::fs;
use std::io;

use tokio::net::UnixStream;

const PASSWD: &str = "/etc/passwd";

/// The name of a user, or `uid N` where the machine has none for it.
pub fn user_name(uid: u32) -> String {
    let users = fs::read_to_string(PASSWD).unwrap_or_default();
    name_in(&users, uid).map_or_else(|| format!("uid {uid}"), str::to_owned)
}

/// The name of the user whom this process runs as. A socket says who is at its other end, which here is ourselves.
pub fn own_name() -> io::Result<String> {
    let (ours, _theirs) = UnixStream::pair()?;
    Ok(user_name(ours.peer_cred()?.uid()))
}

fn name_in(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, id) = (fields.next()?, fields.next()?, fields.next()?);
        let is_name = !name.is_empty() && !name.chars().any(char::is_control);
        (is_name && id.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_number() {
        let users = "root:x:0:0:root:/root:/bin/bash\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(name_in(users, 0), Some("root"));
        assert_eq!(name_in(users, 1000), Some("ada"));
        assert_eq!(name_in(users, 7), None);
        assert_eq!(user_name(4_000_000_001), "uid 4000000001");
    }
}
