//! The rows of earlier versions as they were, and what they are today. Each is named as the row was, so that a line of
//! golden bytes stays as it is when the row gets another version.

use crate::store::codec::{BookRow, EventRow, FeederRow, KeyRow, OddsRow, OwnerRow};

/// Declares a row with its layout. bincode writes it only for the comparison.
macro_rules! earlier {
    (struct $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        #[derive(Debug, PartialEq, bincode::Encode)]
        pub(in crate::store::tests::own_decoder) struct $name {
            $(pub(in crate::store::tests::own_decoder) $field: $type),*
        }

        layout! { struct $name { $($field: $type),* } }
    };
}

pub(super) mod v1 {
    use super::super::layouts::layout;
    use super::super::sample::{Cases, Sample, Tape};
    use super::super::wire::{Layout, Reader};
    use crate::store::codec::{BookStanding, ContestRow, OutcomeRow, PointsRow, QuotedRow};

    // The same version: the number of regions has grown since format 3, in which they were four bits of a byte.
    earlier! { struct BookRow { key: String, title: String, regions: u8, standing: BookStanding } }

    earlier! { struct EventRow {
        id: String,
        competition: u32,
        commence: u32,
        contest: ContestRow,
        status: u8,
        changed: u32,
    } }

    earlier! { struct OddsRow {
        outcomes: Vec<OutcomeRow>,
        last_update: [u8; 4],
        quoted: QuotedRow,
        points: PointsRow,
    } }

    earlier! { struct KeyRow {
        kind: u8,
        name: String,
        groups: Vec<String>,
        burst_per_minute: u32,
        per_day: Option<u64>,
        per_month: Option<u64>,
        created: u32,
        expires: Option<u32>,
        approved_by: Option<String>,
        revoked: Option<u32>,
        hash: [u8; 32],
        last_four: String,
        retired: Vec<([u8; 32], u32)>,
        last_used: Option<u32>,
    } }

    earlier! { struct FeederRow {
        world: u8,
        created: u32,
        revoked: Option<u32>,
        hash: [u8; 32],
        last_four: String,
    } }
}

pub(super) mod v2 {
    use super::super::layouts::layout;
    use super::super::sample::{Cases, Sample, Tape};
    use super::super::wire::{Layout, Reader};
    use super::v1;
    use crate::store::codec::{ContestRow, OwnerRow};

    earlier! { struct EventRow {
        id: String,
        competition: u32,
        commence: u32,
        contest: ContestRow,
        status: u8,
        changed: u32,
        owner: OwnerRow,
    } }

    // A struct in a struct adds no bytes.
    earlier! { struct KeyRow { before: v1::KeyRow, streams: Option<u32> } }
}

impl From<v1::BookRow> for BookRow {
    fn from(v1::BookRow { key, title, regions, standing }: v1::BookRow) -> Self {
        BookRow { key, title, regions: regions.into(), standing }
    }
}

impl From<v1::EventRow> for EventRow {
    fn from(v1::EventRow { id, competition, commence, contest, status, changed }: v1::EventRow) -> Self {
        v2::EventRow { id, competition, commence, contest, status, changed, owner: OwnerRow::Unknown }.into()
    }
}

impl From<v2::EventRow> for EventRow {
    fn from(v2::EventRow { id, competition, commence, contest, status, changed, owner }: v2::EventRow) -> Self {
        EventRow { id, competition, competition_key: None, commence, contest, status, changed, owner }
    }
}

impl From<v1::OddsRow> for OddsRow {
    fn from(v1::OddsRow { outcomes, last_update, quoted, points }: v1::OddsRow) -> Self {
        OddsRow { outcomes, last_update, quoted, points, bookmaker_later_s: 0 }
    }
}

impl From<v1::KeyRow> for KeyRow {
    fn from(before: v1::KeyRow) -> Self {
        v2::KeyRow { before, streams: None }.into()
    }
}

impl From<v2::KeyRow> for KeyRow {
    fn from(v2::KeyRow { before, streams }: v2::KeyRow) -> Self {
        KeyRow {
            kind: before.kind,
            name: before.name,
            groups: before.groups,
            burst_per_minute: before.burst_per_minute,
            per_day: before.per_day,
            per_month: before.per_month,
            created: before.created,
            expires: before.expires,
            approved_by: before.approved_by,
            revoked: before.revoked,
            hash: before.hash,
            last_four: before.last_four,
            retired: before.retired,
            last_used: before.last_used,
            streams,
            replaced_last_four: String::new(),
            self_service: false,
            self_rotated: None,
        }
    }
}

impl From<v1::FeederRow> for FeederRow {
    fn from(v1::FeederRow { world, created, revoked, hash, last_four }: v1::FeederRow) -> Self {
        FeederRow { world, created, revoked, hash, last_four, retired: Vec::new() }
    }
}
