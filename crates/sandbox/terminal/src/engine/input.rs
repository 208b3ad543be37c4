//! What is typed for a running program: text with Enter, and keys (`bash-session` 5.2).

use gloveport_sys::pty;
use tokio::time::Instant;

use super::{course::Event, state::Engine};
use crate::{
    instance::Instance,
    keys::{self, ControlKey, END_OF_INPUT, Effect, NamedKey},
    probe,
    request::Typed,
};

/// The key that takes back the last one in a line that the terminal edits.
const ERASE: u8 = 127;

impl Engine {
    /// Types what came beside the requests.
    pub(super) fn type_ahead(&mut self, typed: &Typed) {
        if self.phase.is_running() {
            match typed {
                Typed::Text(text) => self.type_input(text.trim()),
                Typed::Line(line) => {
                    self.type_held_key();
                    let asking = self.is_asking();
                    self.type_text(line, None, asking);
                }
            }
        }
    }

    /// Types text or a key for the running program. A key that has a name is followed by Enter like a text
    /// (`bash-session` 5.2).
    pub(super) fn type_input(&mut self, text: &str) {
        self.type_held_key();
        let asking = self.is_asking();
        let continued = self.shells.has_queue() && asking;
        // A line of an unfinished command is its text, whatever it says.
        let named = NamedKey::parse(text).filter(|_| !asking);
        if let Some(key) = ControlKey::parse(text).or_else(|| named?.as_signal()) {
            // Where the pipe has no end the unfinished command is given up.
            let given_up = continued && key.byte() == Some(END_OF_INPUT);
            self.press_key(if given_up { ControlKey::INTERRUPT } else { key });
            return;
        }
        self.type_text(text, named, asking);
    }

    fn type_held_key(&mut self) {
        if let Some(key) = self.phase.running().and_then(|command| command.held.take_key()) {
            self.type_key(key);
        }
    }

    /// Whether the shell asks for more of an unfinished command.
    fn is_asking(&mut self) -> bool {
        self.phase.running().is_some_and(|command| command.is_asking())
    }

    /// Types text, or the key that it names, with Enter.
    fn type_text(&mut self, text: &str, named: Option<NamedKey>, asking: bool) {
        if self.shells.has_queue() && asking {
            self.input_typed(text);
            self.queue(&format!("{text}\n"));
            return;
        }
        let modes = self.shells.instance.as_ref().and_then(|instance| pty::modes(&instance.master).ok());
        let canonical = modes.is_none_or(|modes| modes.canonical);
        let echoed = modes.is_some_and(|modes| modes.echo) || !canonical;
        let key = named.map(|key| key.bytes(self.shown.renderer.application_cursor()));
        if let Some(waiter) = self.waiter.as_mut().filter(|_| echoed) {
            waiter.echo = match &key {
                Some(bytes) => canonical.then(|| keys::echo(bytes)),
                None => Some(text.to_owned()),
            };
        }
        if !echoed {
            // On a real terminal the echo of Enter ends the line of the question.
            self.shown.end_line();
        }
        if !self.shells.has_queue() {
            // What a program leaves of it is read by a shell that reads from the terminal.
            self.input_typed(text);
        }
        if self.take_enter() {
            self.typing.add([b'\r']);
        }
        match key {
            Some(bytes) => self.typing.add(bytes),
            None if canonical => self.typing.add(keys::in_parts(text)),
            None => self.typing.add(text.bytes()),
        }
        if canonical {
            self.typing.add([b'\n']);
        } else if let Some(command) = self.phase.running() {
            command.held.enter_later();
        }
        self.write_terminal();
    }

    fn input_typed(&mut self, text: &str) {
        if let Some(command) = self.phase.running() {
            command.on(Event::Typed { lines: text.matches('\n').count() + 1 });
        }
    }

    fn take_enter(&mut self) -> bool {
        self.phase.running().is_some_and(|command| command.held.take_enter())
    }

    /// Presses Enter behind a text for a program that reads single keys, once it has read the text and reads on. A
    /// program that wanted no more than the text gets none: what it leaves would be read by the shell.
    pub(super) fn press_enter(&mut self, now: Instant) {
        let (Some(instance), Some(command)) = (&self.shells.instance, self.phase.running()) else { return };
        let single_keys = pty::modes(&instance.master).is_ok_and(|modes| !modes.canonical);
        let shell = instance.process.pid();
        let reads_on = self.typing.is_typed() && probe::waits_for_input(shell, &instance.master, &instance.slave);
        if single_keys && !reads_on && !command.held.enter_overdue(now) {
            return;
        }
        if command.held.take_enter() && single_keys {
            self.typing.add([b'\r']);
            self.write_terminal();
        }
    }

    /// Types a key for the running program. A signal that comes when the shell has made a process, and that process has
    /// not taken the terminal, would go to the shell, which waits for the program and passes over it: so the key waits
    /// for this moment to pass.
    fn press_key(&mut self, key: ControlKey) {
        let waits = key.shown_as().is_some() && self.is_between_programs();
        if let Some(command) = self.phase.running().filter(|_| waits) {
            command.held.key_later(key);
        } else {
            self.type_key(key);
        }
    }

    /// Whether the shell in the foreground may be starting a program.
    fn is_between_programs(&self) -> bool {
        let instance = self.shells.instance.as_ref();
        instance.is_some_and(|instance| probe::is_between_programs(instance.process.pid(), &instance.master))
    }

    pub(super) fn type_key(&mut self, key: ControlKey) {
        self.take_enter();
        let Some(byte) = key.byte() else { return };
        let signals = self
            .shells
            .instance
            .as_ref()
            .and_then(|instance| pty::modes(&instance.master).ok())
            .is_none_or(|modes| modes.signals);
        if let Some((shown, effect)) = key.shown_as().filter(|_| signals) {
            // bash ends the line of a stop itself.
            self.shown.key(shown, effect == Effect::Stop && self.shells.has_queue());
            if let Some(command) = self.phase.running() {
                command.on(Event::Settled);
            }
            // What was not typed yet is thrown away like what was not read yet.
            self.typing.clear();
            if let Some(queue) = self.shells.instance.as_ref().and_then(Instance::queue) {
                queue.discard();
            }
        }
        self.typing.add([byte]);
        if signals && key.shown_as().is_some() && pty::is_partial() {
            // The key stays to be read there, unless it is taken back.
            self.typing.add([ERASE]);
        }
        self.write_terminal();
    }
}
