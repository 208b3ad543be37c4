//! Any bytes behind the upgrade to a WebSocket, in both directions: no message is larger than its bound, and its words
//! are understood or refused.
#![no_main]

use std::io::{Cursor, Read, Result, Write};

use gloveport_protocol::terminals::{FromTerminal, ToTerminal};
use libfuzzer_sys::fuzz_target;
use tungstenite::{
    Message, WebSocket,
    protocol::{Role, WebSocketConfig},
};

/// The bound of the server's terminals.
const MESSAGE: usize = 256 * 1024;

/// What the other side sends; what it is sent goes nowhere.
struct Line(Cursor<Vec<u8>>);

impl Read for Line {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Line {
    fn write(&mut self, buffer: &[u8]) -> Result<usize> {
        Ok(buffer.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    for role in [Role::Server, Role::Client] {
        let config = WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
        let mut socket = WebSocket::from_raw_socket(Line(Cursor::new(data.to_vec())), role, Some(config));
        while let Ok(message) = socket.read() {
            assert!(message.len() <= MESSAGE);
            if let Message::Text(words) = message {
                let to = serde_json::from_str::<ToTerminal>(&words);
                if let Ok(to) = to {
                    let again = serde_json::to_string(&to).expect("it can be written");
                    assert_eq!(serde_json::from_str::<ToTerminal>(&again).expect("it is understood"), to);
                }
                let _understood = serde_json::from_str::<FromTerminal>(&words);
            }
        }
    }
    let _to = serde_json::from_slice::<ToTerminal>(data);
    let _from = serde_json::from_slice::<FromTerminal>(data);
});
