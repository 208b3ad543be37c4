//! What a reader costs, in a process where nothing else runs.

use crate::common::{Server, within};
use serde_json::json;

#[tokio::test]
async fn a_reader_that_does_not_read_costs_no_memory_and_gets_everything_later() {
    within(async {
        let server = Server::start().await;
        let body = json!({"id": "slow", "command": "head -c 15000000 /dev/zero | tr '\\0' x"});
        // The shell's own screen is filled before the memory is looked at.
        server.events("/v1/exec", &body, None).await.until("exit").await;
        let before = server.metric("gloveport_process_resident_bytes").await;
        let mut slow = Vec::new();
        for _reader in 0..2 {
            let mut events = server.events("/v1/exec", &body, None).await;
            events.next().await;
            slow.push(events);
        }
        let mut quick = server.events("/v1/exec", &body, None).await;
        assert_eq!(length_of(&mut quick).await, 15_000_000);
        let after = server.metric("gloveport_process_resident_bytes").await;
        assert!(after - before < 8e6, "{before} {after}");
        for mut events in slow {
            assert_eq!(length_of(&mut events).await, 15_000_000);
        }
        server.stop().await;
    })
    .await;
}

async fn length_of(events: &mut crate::common::Events) -> usize {
    let mut length = 0;
    while let Some(event) = events.next().await {
        length += event.data["text"].as_str().map_or(0, str::len);
    }
    length
}
