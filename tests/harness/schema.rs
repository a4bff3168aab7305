//! Validates responses against the OpenAPI document. The library's unit tests use it too.
#![allow(clippy::unwrap_used, reason = "a document that is not one stops the test")]

use serde_json::Value;

/// The target of a reference, or the value itself.
pub(crate) fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(target) => document.pointer(&target[1..]).unwrap_or_else(|| panic!("{target} is nowhere")),
        None => value,
    }
}

/// Validates a value against a schema: types, enumerations, required properties, items, alternatives. A property that is
/// not documented is an error unless the schema says `additionalProperties: true`: the document leaves objects open, so that
/// clients generated from it accept the fields of later versions, but this version must have no others.
pub(crate) fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolved(document, schema);
    if let Some(alternatives) = schema["oneOf"].as_array() {
        let fitting = alternatives.iter().filter(|schema| check(document, schema, value).is_ok()).count();
        return if fitting == 1 { Ok(()) } else { Err(format!("{fitting} alternatives fit {value}")) };
    }
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("no such type: {other}"),
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap()).collect(),
        _ => return Err(format!("a schema without a type: {schema}")),
    };
    if !types.iter().any(|name| is(name)) {
        return Err(format!("{value} is not of type {types:?}"));
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        return Err(format!("{value} is not one of {}", schema["enum"]));
    }
    for item in value.as_array().into_iter().flatten() {
        check(document, &schema["items"], item)?;
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        value.get(name.as_str().unwrap()).ok_or_else(|| format!("{name} is missing in {value}"))?;
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(schema) => check(document, schema, field)?,
            None if schema.get("properties").is_some() && schema["additionalProperties"] != true => {
                return Err(format!("{name} is not documented"));
            }
            None => {}
        }
    }
    Ok(())
}
