//! The browser of a sandbox in the native interface.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Answer to `GET /v1/browser`: how the browser stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrowserStatus {
    /// How it stands.
    pub state: BrowserActivity,
    /// Which browser it is, such as `Chrome/156.0.8078.79`, once it is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its first process, once it is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Whether pages are kept apart from the rest of the sandbox by Chromium's own sandbox, once it is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandboxed: Option<bool>,
    /// The open pages, in the order in which they came.
    #[serde(default)]
    pub pages: Vec<PageInfo>,
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What can be done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How a browser stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BrowserActivity {
    /// It starts with its first use.
    Idle,
    /// On its way.
    Starting,
    /// Usable.
    Ready,
    /// Not usable.
    Failed,
    /// Ended.
    Closed,
}

/// A page, or tab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageInfo {
    /// What names it.
    pub id: String,
    /// Its address.
    pub url: String,
    /// Its title.
    #[serde(default)]
    pub title: String,
    /// Whether it is the one that actions are for.
    pub active: bool,
}

/// Body of `POST /v1/browser/navigate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NavigateRequest {
    /// Where to: an address with a scheme, or `back`, `forward` or `reload`.
    pub url: String,
    /// Opens it in a page of its own, which is the active one then.
    #[serde(default)]
    pub new_page: bool,
    /// What is waited for.
    #[serde(default)]
    pub wait: NavigateWait,
}

/// When a navigation has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NavigateWait {
    /// The page has loaded with all that belongs to it.
    #[default]
    Load,
    /// Its document is there.
    Parsed,
    /// The server has answered.
    Answer,
}

/// Which element of the active page is meant: exactly one of `bid`, `text`, `role` and `selector`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ElementTarget {
    /// Its id in the tree of the page (`[12]`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bid: Option<String>,
    /// Text that it shows, or its label: the first visible element whose own text contains it, whatever its case; one
    /// that has exactly this text goes before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its role for assistive technology, such as `button` or `textbox`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// With `role`: its accessible name, of which a part is enough, whatever its case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A CSS selector; open shadow trees are searched, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// Body of `POST /v1/browser/act`: one thing that is done in the active page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BrowserAct {
    /// Click on an element.
    Click {
        /// The element.
        target: ElementTarget,
        /// `left`, `middle` or `right`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        button: Option<String>,
        /// Click twice.
        #[serde(default)]
        double: bool,
    },
    /// Put a text in the place of what a field contains.
    Fill {
        /// The field.
        target: ElementTarget,
        /// The text.
        text: String,
        /// Press Enter afterwards.
        #[serde(default)]
        submit: bool,
    },
    /// Type a text key by key where the focus is.
    Type {
        /// The text.
        text: String,
    },
    /// Press keys, such as `Control+a`, in an element or where the focus is.
    Press {
        /// The element.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<ElementTarget>,
        /// The keys.
        keys: String,
    },
    /// Choose options of a list, by value or label.
    Select {
        /// The list.
        target: ElementTarget,
        /// The options.
        options: Vec<String>,
    },
    /// Move the mouse to an element.
    Hover {
        /// The element.
        target: ElementTarget,
    },
    /// Turn the wheel.
    Scroll {
        /// Pixels to the right.
        #[serde(default)]
        x: f64,
        /// Pixels down.
        #[serde(default)]
        y: f64,
    },
    /// Choose files for a field.
    Upload {
        /// The field.
        target: ElementTarget,
        /// Their paths in the sandbox.
        files: Vec<String>,
    },
    /// Make a page the active one.
    ActivatePage {
        /// Its id.
        id: String,
    },
    /// Close a page.
    ClosePage {
        /// Its id.
        id: String,
    },
}

/// What the active page is like: the answer to `navigate`, `act` and `GET /v1/browser/page`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageView {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// All pages.
    pub pages: Vec<PageInfo>,
    /// The accessibility tree as text; elements have their ids in brackets.
    pub tree: String,
    /// The id of the element that has the focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focused: Option<String>,
    /// Why what was asked for failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Files that were downloaded meanwhile, as paths in the sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub downloads: Vec<String>,
    /// Questions of the page that were answered meanwhile (dialogs).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dialogs: Vec<String>,
}

/// Body of `POST /v1/browser/screenshot`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScreenshotRequest {
    /// The element; without one, what is in view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ElementTarget>,
    /// The whole page, as far as it can be scrolled, up to 16,384 pixels down.
    #[serde(default)]
    pub full_page: bool,
}

/// Body of `POST /v1/browser/pdf`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PdfRequest {
    /// Broad pages.
    #[serde(default)]
    pub landscape: bool,
    /// With colours and pictures behind texts.
    #[serde(default)]
    pub background: bool,
    /// From 0.1 to 2; 1 is the usual size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Which pages, such as `1-3, 5`; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<String>,
}

/// Cookies and local storage, in the form that Playwright calls a storage state: `GET` and `PUT /v1/browser/storage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageState {
    /// The cookies: name, value, domain, path, expires, httpOnly, secure, sameSite.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub cookies: Vec<Value>,
    /// Local storage by origin.
    #[serde(default)]
    pub origins: Vec<OriginState>,
}

/// The local storage of an origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OriginState {
    /// The origin, such as `https://example.org`.
    pub origin: String,
    /// What it keeps.
    #[serde(default, rename = "localStorage")]
    pub local_storage: Vec<StorageEntry>,
}

/// One entry of a storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageEntry {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}
