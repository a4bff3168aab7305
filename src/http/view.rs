//! What an endpoint of one sport reads from: that sport's board in the key's world, and nothing else.

use std::sync::Arc;

use arc_swap::Guard;

use crate::board::{Boards, SportBoard, WorldBoard};
use crate::keys::SportAccess;
use crate::model::{Bookmakers, Sport};

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
