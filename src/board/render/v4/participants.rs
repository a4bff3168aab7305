//! Who competes: the sides of the events of a key, or the field of its tournaments.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::Xxh3;

use crate::board::body::Body;
use crate::board::render::{self, json};
use crate::board::v4::CompetitionView;
use crate::model::{Market, Sport};

/// `current` has the sides; the field of a tournament is every name with an outright price in `published`.
pub(crate) fn participants(
    current: Option<&CompetitionView>,
    published: Option<&CompetitionView>,
    sport: &Sport,
) -> Body {
    let outright = Market::OUTRIGHT.into();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for node in current.into_iter().flat_map(|competition| competition.index.iter()) {
        names.extend(node.event().home().into_iter().chain(node.event().away()).map(|name| &**name));
    }
    for node in published.into_iter().flat_map(|competition| competition.index.iter()) {
        let outrights = node.records_of(&outright, |_| true);
        names.extend(outrights.flat_map(|record| &record.outcomes).map(|outcome| &*outcome.name));
    }
    render::body(|out| {
        json::array(names, out, |name, out| {
            out.extend_from_slice(b"{\"id\":\"");
            out.extend_from_slice(id_of(&sport.key, name).as_bytes());
            out.extend_from_slice(b"\",\"full_name\":");
            json::string(name, out);
            out.push(b'}');
        });
        None
    })
}

/// A hash of the sport and the name: the same in every competition and on every machine.
fn id_of(sport_key: &str, name: &str) -> String {
    let mut hash = Xxh3::new();
    for part in [sport_key, name] {
        hash.update(part.as_bytes());
        hash.update(&[0]);
    }
    format!("par_{:032x}", hash.digest128())
}

#[cfg(test)]
mod tests {
    #[test]
    fn id_is_stable() {
        assert_eq!(super::id_of("mma", "Ana Silva"), "par_4dbea4fded60d4d47975f2a088b9938a");
    }
}
