//! Names of several servers beside each other (action-execution-api 5.4): `{server}_{name}`, and addresses of resources with
//! the server as their first part. A single server's stay as they are.

use serde_json::Value;

/// `{server}_{name}`.
pub(crate) fn prefixed(server: &str, name: &str) -> String {
    format!("{server}_{name}")
}

/// What the server itself calls it, if the name begins with the server's.
pub(crate) fn of_server<'a>(server: &str, name: &'a str) -> Option<&'a str> {
    name.strip_prefix(server)?.strip_prefix('_').filter(|rest| !rest.is_empty())
}

/// `scheme://{server}/rest`. What has no scheme stays as it is.
pub(crate) fn prefixed_uri(server: &str, uri: &str) -> String {
    match uri.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{server}/{rest}"),
        None => uri.to_owned(),
    }
}

/// What the server itself calls the resource, if its name stands there.
pub(crate) fn uri_of_server(server: &str, uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    let rest = rest.strip_prefix(server)?.strip_prefix('/')?;
    Some(format!("{scheme}://{rest}"))
}

/// Changes a text in each element of a list, where both are there.
pub(crate) fn change_each(result: &mut Value, list: &str, field: &str, change: impl Fn(&str) -> String) {
    let elements = result.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    for value in elements.filter_map(|element| element.get_mut(field)) {
        if let Value::String(text) = value {
            *text = change(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_addresses_get_the_server_and_lose_it_again() {
        assert_eq!(prefixed("a", "echo"), "a_echo");
        for (server, name, own) in
            [("a", "a_echo", Some("echo")), ("a", "a_", None), ("a", "ab_echo", None), ("a_b", "a_b_c", Some("c"))]
        {
            assert_eq!(of_server(server, name), own, "{server} {name}");
        }
        for (uri, shown) in [
            ("file:///etc/x", "file://s//etc/x"),
            ("demo://resource/1", "demo://s/resource/1"),
            ("demo://{id}", "demo://s/{id}"),
            ("urn:isbn:1", "urn:isbn:1"),
        ] {
            assert_eq!(prefixed_uri("s", uri), shown);
            let back = uri_of_server("s", shown);
            assert_eq!(back.as_deref(), (uri != shown).then_some(uri));
        }
        assert_eq!(uri_of_server("s", "demo://st/1"), None);
    }

    #[test]
    fn elements_of_another_shape_stay_as_they_are() {
        let mut result = json!({"tools": [{"name": "a"}, {"name": 1}, "b", {}], "name": "c"});
        change_each(&mut result, "tools", "name", |name| prefixed("s", name));
        assert_eq!(result, json!({"tools": [{"name": "s_a"}, {"name": 1}, "b", {}], "name": "c"}));
        change_each(&mut result, "prompts", "name", |name| prefixed("s", name));
        assert_eq!(result["name"], "c");
    }
}
