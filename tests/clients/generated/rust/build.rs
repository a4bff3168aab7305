//! Makes types of the schemas of the document that OPENAPI names.

use std::{env, fs, path::Path};

use typify::{TypeSpace, TypeSpaceSettings};

fn main() {
    println!("cargo::rerun-if-env-changed=OPENAPI");
    let document = env::var("OPENAPI").expect("OPENAPI is the path of the openapi.json of a service");
    println!("cargo::rerun-if-changed={document}");
    let text = fs::read_to_string(document).expect("a readable document");
    let document: serde_json::Value = serde_json::from_str(&text).expect("a document in JSON");
    // A document of OpenAPI keeps its schemas elsewhere than one of JSON Schema.
    let schemas = document["components"]["schemas"].to_string().replace("#/components/schemas/", "#/$defs/");
    let root = serde_json::from_str(&format!(r#"{{"$defs": {schemas}}}"#)).expect("schemas");
    let mut types = TypeSpace::new(&TypeSpaceSettings::default());
    types.add_root_schema(root).expect("schemas that typify understands");
    let file = syn::parse2(types.to_stream()).expect("Rust");
    let out = Path::new(&env::var_os("OUT_DIR").expect("a directory to write to")).join("oddsbox.rs");
    fs::write(out, prettyplease::unparse(&file)).expect("a writable directory");
}
