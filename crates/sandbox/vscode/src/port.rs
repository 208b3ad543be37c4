//! The port that callers of OpenHands expect, and the path under it (`ipython-and-plugins` 4.1, 4.2).

use std::{
    ffi::OsStr,
    net::{Ipv4Addr, SocketAddr},
};

use gloveport_sys::Surroundings;
use tokio::net::TcpListener;

/// Listens on `VSCODE_PORT`, or says why there is no such port.
pub(crate) async fn listen(surroundings: &Surroundings) -> Result<TcpListener, String> {
    let Some(value) = surroundings.variable("VSCODE_PORT") else {
        return Err("VSCODE_PORT is not set".to_owned());
    };
    let Some(port) = parse(value) else {
        return Err(format!("VSCODE_PORT is {}, which is no port", value.display()));
    };
    let bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await;
    bound.map_err(|error| format!("VSCODE_PORT is {port}, where nothing can listen: {error}"))
}

/// Listens there, or says why not.
pub(crate) async fn listen_at(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| format!("nothing can listen on {address}: {error}"))
}

fn parse(value: &OsStr) -> Option<u16> {
    value.to_str()?.trim().parse().ok().filter(|port| *port != 0)
}

/// The path under which the port is reached from outside, without a `/` at its end; empty for the root.
pub(crate) fn base_path(surroundings: &Surroundings) -> String {
    let text = |name| surroundings.variable(name).and_then(OsStr::to_str);
    if let Some(path) = text("OPENVSCODE_SERVER_BASE_PATH") {
        let path = path.trim_end_matches('/');
        let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
        return format!("{slash}{path}");
    }
    let (Some(url), Some(id)) = (text("RUNTIME_URL"), text("RUNTIME_ID")) else { return String::new() };
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after_scheme.find('/').and_then(|start| after_scheme.get(start..)).unwrap_or_default();
    if path.starts_with(&format!("/{id}")) { format!("/{id}/vscode") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(variables: &[(&str, &str)]) -> Surroundings {
        let mut surroundings = Surroundings::inherited("/".into());
        surroundings.environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        surroundings
    }

    #[test]
    fn the_base_path_is_that_of_the_variable_or_of_the_runtime() {
        for (variables, expected) in [
            (&[][..], ""),
            (&[("OPENVSCODE_SERVER_BASE_PATH", "/code")], "/code"),
            (&[("OPENVSCODE_SERVER_BASE_PATH", "code/")], "/code"),
            (&[("OPENVSCODE_SERVER_BASE_PATH", "a/b//")], "/a/b"),
            (&[("OPENVSCODE_SERVER_BASE_PATH", "/")], ""),
            (
                &[
                    ("OPENVSCODE_SERVER_BASE_PATH", "/code"),
                    ("RUNTIME_URL", "https://runtime.example/abc"),
                    ("RUNTIME_ID", "abc"),
                ],
                "/code",
            ),
            (&[("RUNTIME_URL", "https://runtime.example/abc"), ("RUNTIME_ID", "abc")], "/abc/vscode"),
            (&[("RUNTIME_URL", "https://runtime.example/abc/x?y"), ("RUNTIME_ID", "abc")], "/abc/vscode"),
            (&[("RUNTIME_URL", "https://abc.runtime.example"), ("RUNTIME_ID", "abc")], ""),
            (&[("RUNTIME_URL", "https://abc.runtime.example/"), ("RUNTIME_ID", "abc")], ""),
            (&[("RUNTIME_URL", "https://runtime.example/x/abc"), ("RUNTIME_ID", "abc")], ""),
            (&[("RUNTIME_URL", "https://runtime.example/abc")], ""),
            (&[("RUNTIME_ID", "abc")], ""),
            (&[("RUNTIME_URL", ""), ("RUNTIME_ID", "")], ""),
        ] {
            assert_eq!(base_path(&surroundings(variables)), expected, "{variables:?}");
        }
    }

    #[test]
    fn a_port_is_a_number_that_can_be_listened_on() {
        for (value, expected) in [
            ("8081", Some(8081)),
            (" 8081\n", Some(8081)),
            ("+8081", Some(8081)),
            ("65535", Some(65535)),
            ("65536", None),
            ("0", None),
            ("-1", None),
            ("http", None),
            ("80.81", None),
        ] {
            assert_eq!(parse(OsStr::new(value)), expected, "{value:?}");
        }
    }

    #[tokio::test]
    async fn a_port_that_is_missing_wrong_or_taken_is_told() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port().to_string();
        let text = format!("VSCODE_PORT is {port}, where nothing can listen: Address already in use (os error 98)");
        for (value, expected) in [
            (None, "VSCODE_PORT is not set"),
            (Some(""), "VSCODE_PORT is not set"),
            (Some("x"), "VSCODE_PORT is x, which is no port"),
            (Some(port.as_str()), text.as_str()),
        ] {
            let variables: Vec<_> = value.iter().map(|value| ("VSCODE_PORT", *value)).collect();
            assert_eq!(listen(&surroundings(&variables)).await.unwrap_err(), expected);
        }
    }
}
