//! stub
pub(super) const OPENAPI: &str = "{}";
pub(super) const STYLE: &str = "";
pub(super) fn html() -> String {
    String::new()
}
