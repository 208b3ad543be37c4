//! The tools of a server, page by page and within bounds.

use std::io::{self, Write};

use rmcp::{
    Peer, RoleClient,
    model::{PaginatedRequestParams, Tool},
};

use crate::{CallError, Server, fate::Fate};

/// Most tools of a server.
pub const MOST_TOOLS: usize = 20_000;
/// Most bytes of all its tools together, as JSON.
pub const MOST_TOOL_BYTES: usize = 64 * 1024 * 1024;
/// Most pages of its list.
const MOST_PAGES: usize = 2_000;

/// All tools.
pub(crate) async fn tools(server: &Server, peer: &Peer<RoleClient>, fate: &Fate) -> Result<Vec<Tool>, CallError> {
    let (mut tools, mut bytes, mut cursor) = (Vec::new(), 0, None);
    for _ in 0..MOST_PAGES {
        let asked = PaginatedRequestParams::default().with_cursor(cursor.take());
        let page = peer.list_tools(Some(asked)).await.map_err(|error| CallError::of(server, error, fate))?;
        bytes += page.tools.iter().map(size).sum::<usize>();
        tools.extend(page.tools);
        if tools.len() > MOST_TOOLS || bytes > MOST_TOOL_BYTES {
            let limit = format!("more than {MOST_TOOLS} tools, or {} MiB of them", MOST_TOOL_BYTES / 1024 / 1024);
            return Err(CallError::answer(server, limit));
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(tools),
        }
    }
    Err(CallError::answer(server, format!("the list of its tools has more than {MOST_PAGES} pages")))
}

/// Bytes of a tool as JSON.
fn size(tool: &Tool) -> usize {
    let mut count = Count(0);
    // Counting does not fail.
    let _ = serde_json::to_writer(&mut count, tool);
    count.0
}

struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
