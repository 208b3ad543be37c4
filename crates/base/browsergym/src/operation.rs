//! What a call asks for, with its arguments checked (spec/browser.md 4.2).

mod signature;
mod values;

use self::signature::Arguments;
use crate::{error::ActionError, keys::Modifiers, language::Call};

/// One thing that the browser is to do. Elements are named by their bids, which are not yet looked for; see
/// [`crate::bid::Bid`].
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Wait.
    Noop {
        /// Milliseconds, from 0 to `i32::MAX`; more of them are one, as for the timers of the reference.
        wait_ms: f64,
    },
    /// Tell the user something. The page does not change.
    SendMessageToUser {
        /// What to tell.
        text: String,
    },
    /// Tell the user that the task is not possible. The page does not change.
    ReportInfeasible {
        /// Why it is not.
        reason: String,
    },
    /// Turn the mouse wheel where the mouse is.
    Scroll {
        /// Pixels to the right; finite.
        delta_x: f64,
        /// Pixels down; finite.
        delta_y: f64,
    },
    /// Put a text in the place of what an element contains.
    Fill {
        /// The element.
        bid: String,
        /// The text.
        value: String,
    },
    /// Select options of a list, by value or label.
    SelectOption {
        /// The element.
        bid: String,
        /// The options; none deselects all.
        options: Vec<String>,
    },
    /// Click on the centre of an element.
    Click {
        /// The element.
        bid: String,
        /// The button to use.
        button: MouseButton,
        /// The keys held down.
        modifiers: Modifiers,
    },
    /// Click twice on the centre of an element.
    DoubleClick {
        /// The element.
        bid: String,
        /// The button to use.
        button: MouseButton,
        /// The keys held down.
        modifiers: Modifiers,
    },
    /// Move the mouse to the centre of an element.
    Hover {
        /// The element.
        bid: String,
    },
    /// Focus an element and press keys.
    Press {
        /// The element.
        bid: String,
        /// The keys; see [`crate::keys::KeyCombination`].
        key_comb: String,
    },
    /// Focus an element.
    Focus {
        /// The element.
        bid: String,
    },
    /// Empty a field.
    Clear {
        /// The element.
        bid: String,
    },
    /// Drag an element to another.
    DragAndDrop {
        /// The element to drag.
        from: String,
        /// The element to drop it on.
        to: String,
    },
    /// Click on an element, and choose files when it asks for them.
    UploadFile {
        /// The element.
        bid: String,
        /// The paths of the files; none clears the choice.
        files: Vec<String>,
    },
    /// Go to the previous page of the history.
    GoBack,
    /// Go to the next page of the history.
    GoForward,
    /// Go to a page.
    Goto {
        /// Its URL.
        url: String,
    },
    /// Close the active tab.
    TabClose,
    /// Make a tab the active one.
    TabFocus {
        /// Its place in the order of creation, from 0; negative ones count from the end, as in Python.
        index: i64,
    },
    /// Open a tab.
    NewTab,
}

/// A button of the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseButton {
    /// The left one.
    Left,
    /// The middle one.
    Middle,
    /// The right one.
    Right,
}

impl MouseButton {
    /// The name in the DevTools protocol and in calls.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Middle => "middle",
            Self::Right => "right",
        }
    }
}

/// Whether there is a function of this name.
pub(crate) fn exists(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name == name)
}

impl Call {
    /// What the call asks for, or the exception that the reference answers to its arguments.
    ///
    /// The reference looks for an element before it looks at the other arguments, so that an action with an unknown bid
    /// and a wrong argument has another error there.
    pub fn bind(&self) -> Result<Operation, ActionError> {
        // Arguments pass through Python as text, where these are no numbers but a name.
        if self
            .positional
            .iter()
            .chain(self.named.iter().map(|(_, value)| value))
            .any(super::language::Literal::is_infinite)
        {
            return Err(ActionError::name("name 'inf' is not defined"));
        }
        let function = FUNCTIONS
            .iter()
            .find(|function| function.name == self.name)
            .ok_or_else(|| ActionError::name(format!("name '{}' is not defined", self.name)))?;
        (function.operation)(&Arguments::of(self, function.required, function.optional)?)
    }
}

/// A function: its name, its parameters without and with a default, and what it makes of arguments.
#[derive(Clone, Copy)]
struct Function {
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    operation: fn(&Arguments<'_>) -> Result<Operation, ActionError>,
}

const fn function(
    name: &'static str,
    required: &'static [&'static str],
    operation: fn(&Arguments<'_>) -> Result<Operation, ActionError>,
) -> Function {
    Function { name, required, optional: &[], operation }
}

const fn with_optional(function: Function, optional: &'static [&'static str]) -> Function {
    Function { optional, ..function }
}

const FUNCTIONS: [Function; 20] = [
    with_optional(
        function("noop", &[], |arguments| Ok(Operation::Noop { wait_ms: values::wait(arguments.get(0))? })),
        &["wait_ms"],
    ),
    function("send_msg_to_user", &["text"], |arguments| {
        Ok(Operation::SendMessageToUser { text: values::message(arguments.get(0))? })
    }),
    function("report_infeasible", &["reason"], |arguments| {
        Ok(Operation::ReportInfeasible { reason: values::message(arguments.get(0))? })
    }),
    function("scroll", &["delta_x", "delta_y"], |arguments| {
        let delta_x = values::number(arguments.get(0), "Mouse.wheel: delta_x")?;
        let delta_y = values::number(arguments.get(1), "Mouse.wheel: delta_y")?;
        Ok(Operation::Scroll { delta_x, delta_y })
    }),
    function("fill", &["bid", "value"], |arguments| {
        let bid = values::bid(arguments.get(0))?;
        Ok(Operation::Fill { bid, value: values::text(arguments.get(1), "fill", "Locator", "value")? })
    }),
    function("select_option", &["bid", "options"], |arguments| {
        let bid = values::bid(arguments.get(0))?;
        Ok(Operation::SelectOption { bid, options: values::options(arguments.get(1))? })
    }),
    with_optional(
        function("click", &["bid"], |arguments| {
            let (bid, button, modifiers) = values::click(arguments)?;
            Ok(Operation::Click { bid, button, modifiers })
        }),
        &["button", "modifiers"],
    ),
    with_optional(
        function("dblclick", &["bid"], |arguments| {
            let (bid, button, modifiers) = values::click(arguments)?;
            Ok(Operation::DoubleClick { bid, button, modifiers })
        }),
        &["button", "modifiers"],
    ),
    function("hover", &["bid"], |arguments| Ok(Operation::Hover { bid: values::bid(arguments.get(0))? })),
    function("press", &["bid", "key_comb"], |arguments| {
        let bid = values::bid(arguments.get(0))?;
        Ok(Operation::Press { bid, key_comb: values::text(arguments.get(1), "press", "Locator", "key")? })
    }),
    function("focus", &["bid"], |arguments| Ok(Operation::Focus { bid: values::bid(arguments.get(0))? })),
    function("clear", &["bid"], |arguments| Ok(Operation::Clear { bid: values::bid(arguments.get(0))? })),
    function("drag_and_drop", &["from_bid", "to_bid"], |arguments| {
        Ok(Operation::DragAndDrop { from: values::bid(arguments.get(0))?, to: values::bid(arguments.get(1))? })
    }),
    function("upload_file", &["bid", "file"], |arguments| {
        let bid = values::bid(arguments.get(0))?;
        Ok(Operation::UploadFile { bid, files: values::files(arguments.get(1))? })
    }),
    function("go_back", &[], |_| Ok(Operation::GoBack)),
    function("go_forward", &[], |_| Ok(Operation::GoForward)),
    function("goto", &["url"], |arguments| {
        Ok(Operation::Goto { url: values::text(arguments.get(0), "goto", "Page", "url")? })
    }),
    function("tab_close", &[], |_| Ok(Operation::TabClose)),
    function("tab_focus", &["index"], |arguments| Ok(Operation::TabFocus { index: values::index(arguments.get(0))? })),
    function("new_tab", &[], |_| Ok(Operation::NewTab)),
];
