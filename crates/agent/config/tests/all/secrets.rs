//! No secret is ever shown (configuration 10).

use crate::support::Case;

/// Stands in every place that may hold a secret.
const SECRET: &str = "hunter2";

const FILE: &str = r#"
[core]
search_api_key = "hunter2"
jwt_secret = "hunter2"
file_store_web_hook_url = "https://me:hunter2@example.com/?token=hunter2"
file_store_web_hook_headers = { Authorization = "hunter2", X-Any = "hunter2" }
[sandbox]
api_key = "hunter2"
remote_runtime_api_url = "https://hunter2@example.com"
runtime_startup_env_vars = { TOKEN = "hunter2", ANY = "hunter2" }
runtime_extra_build_args = ["API_TOKEN=hunter2", "--build-arg"]
docker_runtime_kwargs = { environment = { ANY = "hunter2" }, auth = { password = "hunter2" }, env = ["A=hunter2"] }
[llm]
api_key = "hunter2"
aws_access_key_id = "hunter2"
aws_secret_access_key = "hunter2"
base_url = "https://me:hunter2@example.com"
[llm.other]
api_key = "hunter2"
completion_kwargs = { extra_headers = { X = "hunter2" }, api_key = "hunter2" }
[agent.other]
extended = { token = "hunter2" }
[mcp]
sse_servers = [{ url = "https://a/?key=hunter2", api_key = "hunter2" }]
shttp_servers = [{ url = "https://me:hunter2@a", api_key = "hunter2" }]
stdio_servers = [{ name = "a", command = "b", env = { ANY = "hunter2" } }, { name = "b", command = "b", env = "A=hunter2" }]
[extended]
password = "hunter2"
deep = { client_secret = ["hunter2"] }
[condenser]
llm = { api_key = "hunter2" }
"#;

const VARIABLES: [(&str, &str); 8] = [
    ("SEARCH_API_KEY", SECRET),
    ("JWT_SECRET", SECRET),
    ("SANDBOX_API_KEY", SECRET),
    ("LLM_API_KEY", SECRET),
    ("SANDBOX_RUNTIME_STARTUP_ENV_VARS", "{'A': 'hunter2'}"),
    ("FILE_STORE_WEB_HOOK_HEADERS", "{'A': 'hunter2'}"),
    ("MCP_STDIO_SERVERS", "[{'name': 'a', 'command': 'b', 'env': {'A': 'hunter2'}}]"),
    ("SANDBOX_ENV_TOKEN", SECRET),
];

#[track_caller]
fn hides(text: &str) {
    assert!(!text.contains(SECRET), "{text}");
}

#[test]
fn neither_debug_nor_values_nor_notes_show_a_secret() {
    for case in [Case::file(FILE), Case::file(FILE).with_variables(&VARIABLES), Case::variables(&VARIABLES)] {
        let loaded = case.load();
        hides(&format!("{loaded:?} {loaded:#?} {:?} {:?}", case.options, loaded.values()));
        hides(&crate::support::texts(&loaded.notes).join("\n"));
        for value in loaded.values() {
            hides(&value.value.to_string());
        }
    }
    // They are there, though.
    let config = Case::file(FILE).config();
    assert_eq!(config.sandbox.api_key.unwrap().expose(), SECRET);
    assert_eq!(config.mcp.stdio_servers[1].env["A"].expose(), SECRET);
    assert_eq!(config.sandbox.runtime_startup_env_vars["ANY"].expose(), SECRET);
    assert_eq!(config.file_store_web_hook_headers.unwrap()["X-Any"].expose(), SECRET);
    assert_eq!(config.extended["password"], SECRET);
}

#[test]
fn no_mistake_shows_the_value_that_was_written() {
    let mut texts: Vec<String> = Vec::new();
    // Every value in turn is made a mistake of type, of syntax, or of its key.
    for (at, line) in FILE.lines().enumerate().filter(|(_, line)| line.contains(SECRET)) {
        let (key, value) = line.split_once(" = ").unwrap();
        for mistake in [
            format!("{key} = [{value}, [5]]"),
            format!("{key} = [[[{value}]]]"),
            format!("{key} = {{ x = {value}, y = 5 }}"),
            format!("{key} = {SECRET}"),
            format!("{key} = \"{SECRET}"),
            format!("{key} = \"{SECRET}\" {SECRET}"),
            format!("{key} = '''{SECRET}"),
            format!("{key} = 5{SECRET}"),
            format!("{key} = \"\\q{SECRET}\""),
            format!("{key}x = {value}"),
        ] {
            let text: Vec<&str> =
                FILE.lines().enumerate().map(|(number, line)| if number == at { &mistake } else { line }).collect();
            let case = Case::file(&text.join("\n"));
            texts.extend(case.notes());
            if let Err(error) = case.try_load() {
                texts.push(error.to_string());
                texts.push(format!("{error:?}"));
            }
        }
    }
    assert!(texts.len() > 200, "{}", texts.len());
    hides(&texts.join("\n"));
}

#[test]
fn no_variable_that_cannot_be_cast_shows_a_secret() {
    for name in [
        "SANDBOX_RUNTIME_STARTUP_ENV_VARS",
        "FILE_STORE_WEB_HOOK_HEADERS",
        "MCP_SSE_SERVERS",
        "MCP_SHTTP_SERVERS",
        "MCP_STDIO_SERVERS",
        "SANDBOX_DOCKER_RUNTIME_KWARGS",
        "SANDBOX_RUNTIME_EXTRA_BUILD_ARGS",
        "LLM_COMPLETION_KWARGS",
        "LLM_SAFETY_SETTINGS",
    ] {
        for value in
            [SECRET, "['hunter2", "{'a': ['hunter2', {'a': 'hunter2'}]}", "[{'url': 'hunter2', 'env': 'hunter2'}]"]
        {
            hides(&Case::variables(&[(name, value)]).notes().join("\n"));
        }
    }
}

#[test]
fn a_dot_env_file_with_mistakes_shows_nothing_of_them() {
    let case = Case::empty().with_file(".env", "LLM_API_KEY=\"hunter2\nhunter2 hunter2\nA='hunter2' hunter2\n");
    assert!(case.notes().len() >= 3, "{:?}", case.notes());
    hides(&case.notes().join("\n"));
}
