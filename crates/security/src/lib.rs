//! Rates the risk of actions, and holds back what the user must confirm.
