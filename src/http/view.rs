//! What an endpoint of one sport reads from: that sport's board in the key's world, and nothing else.

use std::sync::Arc;

use arc_swap::Guard;

use crate::board::{Boards, SportBoard, WorldBoard};
use crate::keys::{Grant, SportAccess};
use crate::model::{Bookmakers, Catalogue, Sport, SportSet};

/// A sport as the holder of an access sees it. Loads the world once, so that one request reads one snapshot.
#[derive(Debug)]
pub(super) struct SportView<'s> {
    pub sport: &'s Sport,
    access: SportAccess,
    world: Guard<Arc<WorldBoard>>,
}

impl<'s> SportView<'s> {
    pub(super) fn new(boards: &'s Boards, access: SportAccess) -> Self {
        SportView { sport: &boards.catalogue()[access.sport()], access, world: boards.load(access.world()) }
    }

    pub(super) fn board(&self) -> &SportBoard {
        self.world.sport(self.access.sport())
    }

    pub(super) fn bookmakers(&self) -> &Bookmakers {
        self.world.books().register()
    }
}

/// All sports that a key may read, as its holder sees them.
#[derive(Debug)]
pub(super) struct WorldView<'s> {
    pub catalogue: &'s Catalogue,
    accesses: Vec<SportAccess>,
    world: Guard<Arc<WorldBoard>>,
}

impl<'s> WorldView<'s> {
    pub(super) fn new(boards: &'s Boards, grant: &Grant) -> Self {
        let catalogue = boards.catalogue();
        let accesses = catalogue.sport_ids().filter_map(|sport| grant.for_sport(sport).ok()).collect();
        WorldView { catalogue, accesses, world: boards.load(grant.world()) }
    }

    pub(super) fn board(&self) -> &WorldBoard {
        &self.world
    }

    pub(super) fn sports(&self) -> SportSet {
        self.accesses.iter().fold(SportSet::NONE, |sports, access| sports.with(access.sport()))
    }

    pub(super) fn bookmakers(&self) -> &Bookmakers {
        self.world.books().register()
    }
}
