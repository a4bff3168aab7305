//! List Bookmakers: `/v1/books`. The register changes rarely, so its list is rendered once for each register.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::board::render::json;
use crate::board::{Boards, Body, Register};
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::Params;
use crate::http::exchange::reply::{Content, Freshness};
use crate::model::{Bookmaker, World};

/// The list of each world, as it was last rendered.
#[derive(Debug, Default)]
pub(crate) struct KeptLists([ArcSwapOption<KeptList>; 2]);

#[derive(Debug)]
struct KeptList {
    register: Arc<Register>,
    body: Arc<Body>,
}

pub(crate) fn get(boards: &Boards, kept: &KeptLists, world: World, query: Option<&str>) -> Result<Content, ApiError> {
    Params::read(query, &[])?;
    let board = boards.load(world);
    let body = kept.body(world, board.register());
    Ok(Content::kept(body, Freshness::UntilRefresh))
}

impl KeptLists {
    fn body(&self, world: World, register: &Arc<Register>) -> Arc<Body> {
        let kept = &self.0[world.index()];
        if let Some(list) = kept.load().as_ref().filter(|list| Arc::ptr_eq(&list.register, register)) {
            return Arc::clone(&list.body);
        }
        let body = Arc::new(render(register));
        kept.store(Some(Arc::new(KeptList { register: Arc::clone(register), body: Arc::clone(&body) })));
        body
    }
}

/// The list itself.
pub(crate) fn render(register: &Register) -> Body {
    let mut out = Vec::with_capacity(96 * register.bookmakers().len() + 2);
    json::array(register.bookmakers().iter(), &mut out, |(_, book), out| write_book(book, out));
    Body::new(out, None)
}

fn write_book(book: &Bookmaker, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"key\":");
    json::string(&book.key, out);
    out.extend_from_slice(b",\"title\":");
    json::string(&book.title, out);
    out.extend_from_slice(b",\"regions\":");
    json::array(book.regions.iter(), out, |region, out| json::string(region.key(), out));
    out.push(b'}');
}
