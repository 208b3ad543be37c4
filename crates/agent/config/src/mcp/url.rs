//! What counts as the URL of an MCP server (configuration 6).

use super::McpError;

/// The URL without blanks around it.
pub(super) fn checked(text: &str) -> Result<String, McpError> {
    let url = text.trim();
    if url.is_empty() {
        return Err(McpError::EmptyUrl);
    }
    let (scheme, rest) = url.split_once(':').filter(|(scheme, _)| is_scheme(scheme)).ok_or(McpError::NoScheme)?;
    let authority = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if authority.is_empty() || authority.contains('[') != authority.contains(']') {
        return Err(McpError::NoHost);
    }
    if ["http", "https", "ws", "wss"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        Ok(url.to_owned())
    } else {
        Err(McpError::WrongScheme)
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}
