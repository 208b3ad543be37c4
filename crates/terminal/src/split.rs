//! stub
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum Script { One, Several(Vec<String>), Block, Incomplete }
pub fn classify(t: &str) -> Script { let _ = (Script::Several(vec![]), Script::Block); if t.contains("<<") || t.matches('"').count() % 2 == 1 { Script::Incomplete } else {Script::One} }
