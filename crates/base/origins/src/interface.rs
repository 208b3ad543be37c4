//! What an interface has for pages.

/// What an interface has for pages.
#[derive(Debug)]
pub struct Interface {
    /// The methods of its requests.
    pub methods: &'static str,
    /// What it reads of a request, beside what every page may send.
    pub accepted: &'static str,
    /// What clients read of the head of an answer, beside what every page sees.
    pub exposed: &'static str,
}

/// What the paths of ports of programs begin with.
const PORTS: &str = "/v1/ports/";
/// The view of the browser, which has pages of its own.
const VIEW: &str = "/v1/browser/view";
/// What clients ask of the server itself, and the sandbox as MCP servers.
const BESIDE: [&str; 5] = ["/alive", "/ready", "/server_info", "/mcp", "/mcp/proxy"];

impl Interface {
    /// That of the server of a sandbox: the native interface and MCP.
    pub const SANDBOX: &'static Self = &Self {
        methods: "DELETE, GET, HEAD, POST, PUT",
        accepted: "X-Session-API-Key, Content-Type, Accept-Encoding, Cache-Control, If-Match, If-Modified-Since, If-None-Match, \
             If-Range, If-Unmodified-Since, Last-Event-ID, Range, Authorization, Mcp-Protocol-Version, Mcp-Session-Id",
        exposed: "Accept-Ranges, Content-Disposition, Content-Length, Content-Range, ETag, Mcp-Session-Id, Retry-After, \
             X-Exec-Id, X-File-Mode, X-Output-Next, X-Output-Offset, X-Output-State",
    };

    /// Whether pages may use what is at a path of the server of a sandbox: the native interface, MCP, and what clients ask
    /// of the server itself. Programs behind ports say themselves which pages may use them, and the view of the browser has
    /// pages of its own.
    pub fn is_of_sandbox(path: &str) -> bool {
        let is_native = path.starts_with("/v1/") && !path.starts_with(PORTS) && !path.starts_with(VIEW);
        is_native || BESIDE.contains(&path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_use_the_native_interface_of_a_sandbox_and_nothing_of_its_programs() {
        for (path, expected) in [
            ("/v1/exec", true),
            ("/v1/files/read", true),
            ("/alive", true),
            ("/mcp", true),
            ("/mcp/proxy", true),
            ("/v1/ports/8000/", false),
            ("/v1/browser/view", false),
            ("/v1", false),
            ("/v1x", false),
            ("/execute_action", false),
            ("/plugins/vscode/", false),
            ("/mcp/other", false),
            ("", false),
        ] {
            assert_eq!(Interface::is_of_sandbox(path), expected, "{path}");
        }
    }
}
