//! Example requests in four languages, generated from the example target of an operation.

/// Replaced by the script with the address that the page was loaded from.
pub(super) const BASE_URL: &str = "http://127.0.0.1:8080";

/// The languages and the code of one example.
pub(super) fn samples(target: &str) -> [(&'static str, String); 4] {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs: Vec<(&str, &str)> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    [
        ("curl", curl(target)),
        ("Python", python(path, &pairs)),
        ("JavaScript", javascript(target)),
        ("Rust", rust(path, &pairs)),
    ]
}

/// In a demo the script puts a key in the place of the variable.
pub(super) fn curl(target: &str) -> String {
    format!("curl -H \"X-API-Key: $ODDSBOX_KEY\" \\\n  '{BASE_URL}{target}'")
}

pub(super) fn curl_post(target: &str, body: Option<&str>) -> String {
    let options = match body {
        Some(body) => format!("curl -H 'Content-Type: application/json' -d '{body}' \\\n  "),
        None => "curl -X POST ".to_owned(),
    };
    curl(target).replacen("curl ", &options, 1)
}

fn python(path: &str, pairs: &[(&str, &str)]) -> String {
    let params: Vec<String> = pairs.iter().map(|(name, value)| format!("\"{name}\": \"{value}\"")).collect();
    let params = if params.is_empty() { String::new() } else { format!("    params={{{}}},\n", params.join(", ")) };
    format!(
        "import os\nimport requests\n\nresponse = requests.get(\n    \"{BASE_URL}{path}\",\n{params}    \
         headers={{\"X-API-Key\": os.environ[\"ODDSBOX_KEY\"]}},\n    timeout=10,\n)\nresponse.raise_for_status()\n\
         print(response.json())"
    )
}

fn javascript(target: &str) -> String {
    format!(
        "const response = await fetch(\"{BASE_URL}{target}\", {{\n  headers: {{ \"X-API-Key\": process.env.ODDSBOX_KEY }},\n}});\n\
         if (!response.ok) throw new Error(await response.text());\nconsole.log(await response.json());"
    )
}

fn rust(path: &str, pairs: &[(&str, &str)]) -> String {
    let params: Vec<String> = pairs.iter().map(|(name, value)| format!("(\"{name}\", \"{value}\")")).collect();
    let params = if params.is_empty() { String::new() } else { format!("    .query(&[{}])\n", params.join(", ")) };
    format!(
        "let response: serde_json::Value = reqwest::blocking::Client::new()\n    .get(\"{BASE_URL}{path}\")\n{params}    \
         .header(\"X-API-Key\", std::env::var(\"ODDSBOX_KEY\")?)\n    .send()?\n    .error_for_status()?\n    .json()?;\n\
         println!(\"{{response:#}}\");"
    )
}
