//! Any JSON: an action or observation that is understood survives a round trip, and nothing panics.
#![no_main]

use gloveport_protocol::{ActionEvent, ObservationEvent};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    if let Ok(event) = ActionEvent::from_value(value.clone()) {
        let again = ActionEvent::from_value(event.to_value()).expect("our own JSON is understood");
        assert_eq!(event, again);
    }
    if let Ok(event) = ObservationEvent::from_value(value) {
        let again = ObservationEvent::from_value(event.to_value()).expect("our own JSON is understood");
        assert_eq!(event, again);
    }
});
