//! Operations on the service as a whole.

use serde::{Deserialize, Serialize};

use super::EntryError;
use super::fields::{read_sport, read_world};
use crate::model::{Catalogue, Maintenance, Timestamp};
use crate::writer::operation::{MarkSimulated, SetMaintenance, WriteAudit};
use crate::writer::{DueSport, Publication, SharedOperation, Sweep};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ServiceFields {
    Maintenance { maintenance: Option<MaintenanceFields>, who: Box<str> },
    MarkSimulated { who: Box<str> },
    Audit { who: Box<str>, action: Box<str>, subject: Box<str>, detail: String },
    Publish { sports: Vec<DueSportFields>, at: u32, is_tick: bool },
    SweepEvents { world: String },
    SweepSources { world: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MaintenanceFields {
    since: u32,
    until: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DueSportFields {
    world: String,
    sport: String,
    has_prices: bool,
    is_forced: bool,
}

impl ServiceFields {
    pub(super) fn of_publication(publication: &Publication, catalogue: &Catalogue) -> Self {
        let sport = |due: &DueSport| DueSportFields {
            world: due.world.to_string(),
            sport: catalogue[due.sport].key.to_string(),
            has_prices: due.has_prices,
            is_forced: due.is_forced,
        };
        let sports = publication.sports.iter().map(sport).collect();
        ServiceFields::Publish { sports, at: publication.at.unix(), is_tick: publication.is_tick }
    }

    pub(super) fn operation(self, catalogue: &Catalogue) -> Result<SharedOperation, EntryError> {
        Ok(match self {
            ServiceFields::Maintenance { maintenance, who } => {
                let until = maintenance.map(|MaintenanceFields { since, until }| Maintenance {
                    since: Timestamp::from_unix(since),
                    until: until.map(Timestamp::from_unix),
                });
                SetMaintenance { until, who }.into()
            }
            ServiceFields::MarkSimulated { who } => MarkSimulated { who }.into(),
            ServiceFields::Audit { who, action, subject, detail } => WriteAudit { who, action, subject, detail }.into(),
            ServiceFields::Publish { sports, at, is_tick } => {
                let sports = sports.into_iter().map(|sport| sport.due(catalogue)).collect::<Result<_, _>>()?;
                Publication { sports, at: Timestamp::from_unix(at), is_tick }.into()
            }
            ServiceFields::SweepEvents { world } => Sweep::Events(read_world(&world)?).into(),
            ServiceFields::SweepSources { world } => Sweep::Sources(read_world(&world)?).into(),
        })
    }
}

impl DueSportFields {
    fn due(self, catalogue: &Catalogue) -> Result<DueSport, EntryError> {
        let (world, sport) = (read_world(&self.world)?, read_sport(&self.sport, catalogue)?);
        Ok(DueSport { world, sport, has_prices: self.has_prices, is_forced: self.is_forced })
    }
}

impl From<SetMaintenance> for ServiceFields {
    fn from(SetMaintenance { until, who }: SetMaintenance) -> Self {
        let maintenance = until.map(|Maintenance { since, until }| MaintenanceFields {
            since: since.unix(),
            until: until.map(Timestamp::unix),
        });
        ServiceFields::Maintenance { maintenance, who }
    }
}

impl From<MarkSimulated> for ServiceFields {
    fn from(MarkSimulated { who }: MarkSimulated) -> Self {
        ServiceFields::MarkSimulated { who }
    }
}

impl From<WriteAudit> for ServiceFields {
    fn from(WriteAudit { who, action, subject, detail }: WriteAudit) -> Self {
        ServiceFields::Audit { who, action, subject, detail }
    }
}

impl From<Sweep> for ServiceFields {
    fn from(sweep: Sweep) -> Self {
        match sweep {
            Sweep::Events(world) => ServiceFields::SweepEvents { world: world.to_string() },
            Sweep::Sources(world) => ServiceFields::SweepSources { world: world.to_string() },
        }
    }
}
