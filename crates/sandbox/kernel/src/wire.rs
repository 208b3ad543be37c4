//! The Jupyter messaging protocol on the sockets of one kernel: where they are, and how messages are framed and signed.
//!
//! The parts of a message are header, parent header, metadata and content, as JSON; before them stand a delimiter and
//! their signature.

use std::{fmt, path::Path};

use ring::hmac;
use serde::Serialize;
use serde_json::{Value, json};
use zeromq::{SocketRecv, SocketSend, ZmqError, ZmqMessage};

/// Stands between the addresses of a message and its signature.
const DELIMITER: &[u8] = b"<IDS|MSG>";
/// Parts that are signed.
const SIGNED: usize = 4;
/// Version of the protocol.
const VERSION: &str = "5.3";

/// Where a kernel listens, and the key that signs what is said there. Its JSON is a connection file.
#[derive(Serialize)]
pub(crate) struct ConnectionFile {
    transport: &'static str,
    /// Beginning of the paths of the sockets.
    ip: String,
    shell_port: u16,
    iopub_port: u16,
    stdin_port: u16,
    control_port: u16,
    hb_port: u16,
    signature_scheme: &'static str,
    key: String,
}

impl fmt::Debug for ConnectionFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ConnectionFile").field("ip", &self.ip).finish_non_exhaustive()
    }
}

impl ConnectionFile {
    /// Sockets in a directory.
    pub(crate) fn new(directory: &Path, key: String) -> Self {
        Self {
            transport: "ipc",
            ip: directory.join("s").to_string_lossy().into_owned(),
            shell_port: 1,
            iopub_port: 2,
            stdin_port: 3,
            control_port: 4,
            hb_port: 5,
            signature_scheme: "hmac-sha256",
            key,
        }
    }

    pub(crate) fn shell(&self) -> String {
        self.endpoint(self.shell_port)
    }

    pub(crate) fn control(&self) -> String {
        self.endpoint(self.control_port)
    }

    pub(crate) fn output(&self) -> String {
        self.endpoint(self.iopub_port)
    }

    pub(crate) fn signer(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.key.as_bytes())
    }

    fn endpoint(&self, port: u16) -> String {
        format!("ipc://{}-{port}", self.ip)
    }

    #[cfg(test)]
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

/// A connected socket.
pub(crate) struct Connection<S> {
    pub(crate) socket: S,
    key: hmac::Key,
    session: String,
    /// Requests that were sent.
    count: u64,
}

impl<S> Connection<S> {
    pub(crate) fn new(socket: S, key: hmac::Key, session: &str) -> Self {
        Self { socket, key, session: session.to_owned(), count: 0 }
    }
}

impl<S: SocketSend> Connection<S> {
    /// Sends a request; answers its id, which no other connection of this session gives.
    pub(crate) async fn send(&mut self, channel: &str, kind: &str, content: Value) -> Result<String, ZmqError> {
        self.count += 1;
        let id = format!("{}-{channel}-{}", self.session, self.count);
        let header = json!({
            "msg_id": id,
            "msg_type": kind,
            "username": "gloveport",
            "session": self.session,
            "date": "1970-01-01T00:00:00.000000Z",
            "version": VERSION,
        });
        let parts = [header.to_string(), "{}".to_owned(), "{}".to_owned(), content.to_string()];
        let mut signed = hmac::Context::with_key(&self.key);
        for part in &parts {
            signed.update(part.as_bytes());
        }
        let mut message = ZmqMessage::from(DELIMITER.to_vec());
        message.push_back(gloveport_ids::hex(signed.sign().as_ref()).into());
        for part in parts {
            message.push_back(part.into());
        }
        self.socket.send(message).await?;
        Ok(id)
    }
}

impl<S: SocketRecv> Connection<S> {
    /// The parts of the next message; `None` for one that is not signed as it must be.
    pub(crate) async fn receive(&mut self) -> Result<Option<Vec<bytes::Bytes>>, ZmqError> {
        let message = self.socket.recv().await?;
        Ok(verified(message, &self.key))
    }
}

/// The signed parts of a message.
fn verified(message: ZmqMessage, key: &hmac::Key) -> Option<Vec<bytes::Bytes>> {
    let mut frames = message.into_vec();
    let delimiter = frames.iter().position(|frame| frame.as_ref() == DELIMITER)?;
    let mut parts = frames.split_off(delimiter + 1);
    if parts.len() < 1 + SIGNED {
        return None;
    }
    let signature = from_hex(&parts.remove(0))?;
    parts.truncate(SIGNED);
    hmac::verify(key, &parts.concat(), &signature).ok()?;
    Some(parts)
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    text.len().is_multiple_of(2).then(|| (0..text.len()).step_by(2).map(pair).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_another_signature_or_too_few_parts_is_ignored() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"key");
        let parts = ["{\"a\":1}", "{}", "{}", "{\"code\":\"1\"}"];
        let signature = gloveport_ids::hex(hmac::sign(&key, parts.concat().as_bytes()).as_ref());
        let message = |frames: &[&[u8]]| {
            let mut message = ZmqMessage::from(b"topic".to_vec());
            for frame in frames {
                message.push_back(frame.to_vec().into());
            }
            verified(message, &key)
        };
        let [a, b, c, d] = parts.map(str::as_bytes);
        let whole = message(&[DELIMITER, signature.as_bytes(), a, b, c, d, b"buffer"]).unwrap();
        assert_eq!(whole, parts);
        let other = gloveport_ids::hex(hmac::sign(&key, b"other").as_ref());
        for frames in [
            &[DELIMITER, other.as_bytes(), a, b, c, d][..],
            &[DELIMITER, signature.as_bytes(), a, b, c, b"{}"],
            &[DELIMITER, signature.as_bytes(), a, b, c],
            &[DELIMITER, b"xyz", a, b, c, d],
            &[DELIMITER],
            &[signature.as_bytes(), a, b, c, d],
        ] {
            assert_eq!(message(frames), None);
        }
    }

    #[test]
    fn the_key_is_not_shown() {
        let file = ConnectionFile::new(Path::new("/tmp/x"), "secret".to_owned());
        assert!(!format!("{file:?}").contains("secret"));
        assert_eq!(file.shell(), "ipc:///tmp/x/s-1");
    }
}
