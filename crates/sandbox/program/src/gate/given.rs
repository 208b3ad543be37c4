//! What a gate in a container puts into requests: a line on its standard input, so that no file, variable or argument of the
//! container has it, and nothing that its engine shows. A gate that is started again gets none.

use std::{
    io::{self, Write as _},
    os::fd::AsFd,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use gloveport_allow_list::Rules;
use gloveport_contract::gate::{EDGE_ABSENT, EDGE_TAKEN, EDGE_WITHIN, LONGEST_EDGE};
use gloveport_egress::Edge;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zeroize::Zeroizing;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// What is put into requests.
pub(super) enum Given {
    Edge(Edge),
    /// It was lost with a gate before this one, which had it for these.
    Lost(Rules),
}

/// Takes it, and says on standard output whether there was any.
pub(super) async fn take(hosts: &[String]) -> anyhow::Result<Given> {
    let lost = Rules::parse(hosts).context("cannot understand whom secrets are for")?;
    let read = tokio::task::spawn_blocking(|| line(&io::stdin(), EDGE_WITHIN, LONGEST_EDGE));
    let line = read.await?.context("cannot read on standard input what is put into requests")?;
    let (given, told) = if let Some(line) = line {
        (Given::Edge(super::edge_of(&line)?), EDGE_TAKEN)
    } else {
        tracing::warn!(hosts = %lost, "no secrets came on standard input, so nothing goes to their hosts");
        (Given::Lost(lost), EDGE_ABSENT)
    };
    // Whoever started this may be gone, and then nobody reads it.
    if let Err(error) = writeln!(io::stdout(), "{told}") {
        tracing::debug!(%error, "nobody is told");
    }
    Ok(given)
}

/// A line that is not empty; none if nothing comes in time.
fn line(from: &impl AsFd, limit: Duration, longest: u64) -> anyhow::Result<Option<Zeroizing<Vec<u8>>>> {
    let longest = usize::try_from(longest)?;
    let until = Instant::now() + limit;
    let mut line = Zeroizing::new(Vec::new());
    let mut piece = Zeroizing::new(vec![0; PIECE]);
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now()))?;
        let mut waited = [PollFd::new(from, PollFlags::IN)];
        match poll(&mut waited, Some(&left)) {
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(0) => bail!("no end of the line came within {} s", limit.as_secs_f64()),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let count = match rustix::io::read(from, &mut **piece) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
            Err(error) => return Err(error.into()),
        };
        let read = piece.get(..count).unwrap_or_default();
        let end = read.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(read.get(..end.unwrap_or(count)).unwrap_or_default());
        if line.len() > longest {
            bail!("it has more than {longest} bytes");
        }
        match end {
            Some(_) => return Ok(Some(line).filter(|line| !line.is_empty())),
            None if count == 0 && line.is_empty() => return Ok(None),
            None if count == 0 => bail!("it ended before the end of the line"),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    const SOON: Duration = Duration::from_millis(50);

    /// What is read of this, by somebody who then waits, or is gone.
    fn read(text: &[u8], is_gone: bool) -> Result<Option<String>, String> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(text).unwrap();
        let held = (!is_gone).then_some(theirs);
        let line = line(&ours, SOON, 10).map_err(|error| error.to_string());
        drop(held);
        Ok(line?.map(|line| String::from_utf8(line.to_vec()).unwrap()))
    }

    #[test]
    fn a_line_is_taken_its_absence_is_told_and_a_part_of_it_is_an_error() {
        assert_eq!(read(b"secret\n", false), Ok(Some("secret".to_owned())));
        assert_eq!(read(b"secret\nmore", true), Ok(Some("secret".to_owned())));
        for is_gone in [true, false] {
            assert_eq!(read(b"", is_gone), Ok(None));
            assert_eq!(read(b"\n", is_gone), Ok(None));
        }
        assert!(read(b"secr", true).unwrap_err().contains("ended before the end of the line"));
        assert!(read(b"secr", false).unwrap_err().contains("no end of the line came within 0.05 s"));
        for text in [&b"01234567890"[..], b"01234567890\n"] {
            assert!(read(text, false).unwrap_err().contains("more than 10 bytes"));
        }
    }
}
