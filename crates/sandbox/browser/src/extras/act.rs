//! One thing that is done in the active page.

use std::time::Duration;

use gloveport_browsergym::{
    ActionError,
    keys::{self, KeyCombination, Modifiers, TypingStep},
    operation::{MouseButton, Operation},
};
use gloveport_protocol::browser::BrowserAct;
use serde_json::json;

use super::{
    fault::Fault,
    script,
    target::{self, Wanted, Work},
};
use crate::{
    act,
    browser::BrowserError,
    cdp::CdpError,
    element::{Element, failed},
    input,
    live::Live,
    script::{Argument, ScriptError},
    world::TargetId,
};

/// What is to be done.
#[derive(Debug)]
pub(super) enum Deed {
    With(Wanted, Handling),
    Type(String),
    Press(String),
    Scroll { x: f64, y: f64 },
    ActivatePage(TargetId),
    ClosePage(TargetId),
}

/// What is to be done with an element.
#[derive(Debug)]
pub(super) enum Handling {
    Click { button: MouseButton, double: bool },
    Fill { text: String, submit: bool },
    Press(String),
    Select(Vec<String>),
    Hover,
    Upload(Vec<String>),
}

impl Deed {
    /// Reads what a program says.
    pub(super) fn of(act: BrowserAct) -> Result<Self, BrowserError> {
        Ok(match act {
            BrowserAct::Click { target, button, double } => {
                Self::With(Wanted::of(&target)?, Handling::Click { button: named(button.as_deref())?, double })
            }
            BrowserAct::Fill { target, text, submit } => {
                Self::With(Wanted::of(&target)?, Handling::Fill { text, submit })
            }
            BrowserAct::Type { text } => Self::Type(text),
            BrowserAct::Press { target: Some(target), keys } => Self::With(Wanted::of(&target)?, Handling::Press(keys)),
            BrowserAct::Press { target: None, keys } => Self::Press(keys),
            BrowserAct::Select { target, options } => Self::With(Wanted::of(&target)?, Handling::Select(options)),
            BrowserAct::Hover { target } => Self::With(Wanted::of(&target)?, Handling::Hover),
            BrowserAct::Scroll { x, y } => Self::Scroll { x, y },
            BrowserAct::Upload { target, files } => Self::With(Wanted::of(&target)?, Handling::Upload(files)),
            BrowserAct::ActivatePage { id } => Self::ActivatePage(TargetId::from(id.as_str())),
            BrowserAct::ClosePage { id } => Self::ClosePage(TargetId::from(id.as_str())),
        })
    }
}

fn named(button: Option<&str>) -> Result<MouseButton, BrowserError> {
    match button {
        None | Some("left") => Ok(MouseButton::Left),
        Some("middle") => Ok(MouseButton::Middle),
        Some("right") => Ok(MouseButton::Right),
        Some(other) => {
            Err(BrowserError::Invalid(format!("there is no button {other:?}: give `left`, `middle` or `right`")))
        }
    }
}

/// Does it.
pub(super) async fn perform(live: &Live, deed: &Deed) -> Result<(), Fault> {
    let page = live.active().await.map_err(|error| failed("Page", error))?;
    match deed {
        Deed::With(wanted, handling) => target::with(live, &page, wanted, handling).await,
        Deed::Type(text) => Ok(type_text(live, &page, text).await?),
        Deed::Press(keys) => {
            let combination = KeyCombination::parse(keys)?;
            let pressed = async { input::keys(&live.page_session(&page)?, combination.events()).await };
            match pressed.await {
                // The page may close by that.
                Ok(()) | Err(CdpError::Gone) => Ok(()),
                Err(error) => Err(failed("Keyboard.press", error).into()),
            }
        }
        Deed::Scroll { x, y } => Ok(act::perform(live, Operation::Scroll { delta_x: *x, delta_y: *y }).await?),
        Deed::ActivatePage(page) => Ok(activate(live, page).await?),
        Deed::ClosePage(page) => Ok(close(live, page).await?),
    }
}

impl Work for Handling {
    type Done = ();

    async fn attempt(&self, live: &Live, element: Element) -> Result<(), ActionError> {
        match self {
            Self::Upload(files) => upload(live, element, files).await,
            handling => handle(live, &element, handling).await,
        }
    }
}

async fn handle(live: &Live, element: &Element, handling: &Handling) -> Result<(), ActionError> {
    let bid = target::bid(live, element).await?;
    let then = match handling {
        Handling::Fill { submit: true, .. } => {
            Some(Operation::Press { bid: bid.clone(), key_comb: "Enter".to_owned() })
        }
        _ => None,
    };
    let first = match handling {
        Handling::Click { button, double: false } => {
            Operation::Click { bid, button: *button, modifiers: Modifiers::NONE }
        }
        Handling::Click { button, double: true } => {
            Operation::DoubleClick { bid, button: *button, modifiers: Modifiers::NONE }
        }
        Handling::Fill { text, .. } => Operation::Fill { bid, value: text.clone() },
        Handling::Press(keys) => Operation::Press { bid, key_comb: keys.clone() },
        Handling::Select(options) => Operation::SelectOption { bid, options: options.clone() },
        Handling::Hover => Operation::Hover { bid },
        Handling::Upload(files) => Operation::UploadFile { bid, files: files.clone() },
    };
    act::perform(live, first).await?;
    match then {
        Some(operation) => act::perform(live, operation).await,
        None => Ok(()),
    }
}

async fn type_text(live: &Live, page: &TargetId, text: &str) -> Result<(), ActionError> {
    let typed = async {
        let session = live.page_session(page)?;
        for step in keys::typing(text) {
            match step {
                TypingStep::Key(event) => input::keys(&session, [event]).await?,
                TypingStep::Insert(character) => {
                    input::insert(&session, character.encode_utf8(&mut [0; 4])).await?;
                }
            }
        }
        Ok(())
    };
    match typed.await {
        Ok(()) | Err(CdpError::Gone) => Ok(()),
        Err(error) => Err(failed("Keyboard.type", error)),
    }
}

/// Gives files to a field, which is often hidden behind something nicer; anything else is clicked and asked.
async fn upload(live: &Live, element: Element, files: &[String]) -> Result<(), ActionError> {
    const OPERATION: &str = "Locator.set_input_files";
    let refused = |error: ScriptError| failed(OPERATION, error);
    let field = script::object(&element.realm, "fileInput", vec![Argument::Object(&element.object)]).await;
    let Some(field) = field.map_err(refused)? else {
        return handle(live, &element, &Handling::Upload(files.to_vec())).await;
    };
    let several: bool =
        script::call(&element.realm, "takesSeveral", vec![Argument::Object(&field)]).await.map_err(refused)?;
    if files.len() > 1 && !several {
        return Err(ActionError::driver(format!("{OPERATION}: the field takes only one file")));
    }
    let mut paths = Vec::with_capacity(files.len());
    for file in files {
        let path = live.directory.join(file);
        if let Err(error) = std::fs::metadata(&path) {
            return Err(ActionError::new("FileNotFoundError", format!("{error}: '{}'", path.display())));
        }
        paths.push(path.to_string_lossy().into_owned());
    }
    let parameters = json!({ "files": paths, "objectId": field.0 });
    let set = element.realm.session.call("DOM.setFileInputFiles", parameters).await;
    set.map(drop).map_err(|error| failed(OPERATION, error))
}

fn no_page(page: &TargetId) -> ActionError {
    ActionError::value(format!("there is no page {:?}", page.as_str()))
}

async fn activate(live: &Live, page: &TargetId) -> Result<(), ActionError> {
    let session = live.page_session(page).map_err(|_| no_page(page))?;
    live.shared.with(|world| world.activate(page));
    live.bring_to_front(page, &session).await.map_err(|error| failed("Page.bring_to_front", error))
}

async fn close(live: &Live, page: &TargetId) -> Result<(), ActionError> {
    if live.shared.with(|world| world.page(page).is_none()) {
        return Err(no_page(page));
    }
    let closed = live.connection.browser().call("Target.closeTarget", json!({ "targetId": page.as_str() })).await;
    closed.map_err(|error| failed("Page.close", error))?;
    let gone = live.shared.until(Duration::from_secs(5), |world| world.page(page).is_none().then_some(()));
    // One that does not go is not waited for.
    let _in_time = gone.await;
    // There is always one.
    live.active().await.map(drop).map_err(|error| failed("BrowserContext.new_page", error))
}
