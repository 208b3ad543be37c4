//! The one place where keys are defined.
//!
//! `section!` takes a section with its keys, types, defaults and words, and makes of it the struct, its defaults, its
//! `Debug`, and the list of keys from which variables, the JSON schema, the default file and the documentation follow.

use crate::{kind::Kind, setting::Setting};

/// One key of a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is for, with the line breaks of the source as double blanks.
    pub(crate) doc: &'static str,
    /// Its type.
    pub(crate) kind: Kind,
    /// What to use instead.
    pub(crate) deprecated: Option<&'static str>,
    /// Where a default comes from that is not a constant.
    pub(crate) dynamic: Option<&'static str>,
    /// Why no variable sets it.
    pub(crate) file_only: Option<&'static str>,
    /// A value as TOML, for a key that is unset by default.
    pub(crate) example: Option<&'static str>,
}

impl Key {
    /// A key without special marks.
    pub(crate) const fn new(name: &'static str, doc: &'static str, kind: Kind) -> Self {
        Self { name, doc, kind, deprecated: None, dynamic: None, file_only: None, example: None }
    }
}

/// A struct whose fields are the keys of one section.
pub(crate) trait Section {
    /// Its name in the file.
    const NAME: &'static str;
    /// What it is for.
    const ABOUT: &'static str;
    /// Its keys in the order of the source.
    const KEYS: &'static [Key];

    /// The field of a key.
    fn setting(&self, name: &str) -> Option<&dyn Setting>;

    /// The field of a key, to be changed.
    fn setting_mut(&mut self, name: &str) -> Option<&mut dyn Setting>;
}

/// Defines a section. `with` adds fields that are not keys.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        pub struct $section:ident = $section_name:literal {
            $(
                $(#[doc = $doc:literal])+
                $name:ident: $type:ty = $default:expr $(, $mark:ident = $text:expr)*;
            )+
        }
        $(with {
            $(
                $(#[doc = $extra_doc:literal])+
                $extra:ident: $extra_type:ty = $extra_default:expr;
            )+
        })?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, PartialEq)]
        pub struct $section {
            $($(#[doc = $doc])+ pub $name: $type,)+
            $($($(#[doc = $extra_doc])+ pub $extra: $extra_type,)+)?
        }

        impl Default for $section {
            fn default() -> Self {
                Self {
                    $($name: $default,)+
                    $($($extra: $extra_default,)+)?
                }
            }
        }

        impl std::fmt::Debug for $section {
            /// Secrets are masked.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut text = f.debug_struct(stringify!($section));
                $(text.field(stringify!($name), &$crate::setting::Setting::shown(&self.$name));)+
                $($(text.field(stringify!($extra), &self.$extra);)+)?
                text.finish()
            }
        }

        impl $crate::key::Section for $section {
            const NAME: &'static str = $section_name;
            const ABOUT: &'static str = concat!($($about),+);
            const KEYS: &'static [$crate::key::Key] = &[$(
                $crate::key::Key {
                    $($mark: Some($text),)*
                    ..$crate::key::Key::new(
                        stringify!($name),
                        concat!($($doc),+),
                        <$type as $crate::setting::SettingValue>::KIND,
                    )
                },
            )+];

            fn setting(&self, name: &str) -> Option<&dyn $crate::setting::Setting> {
                $(if name == stringify!($name) {
                    return Some(&self.$name);
                })+
                None
            }

            fn setting_mut(&mut self, name: &str) -> Option<&mut dyn $crate::setting::Setting> {
                $(if name == stringify!($name) {
                    return Some(&mut self.$name);
                })+
                None
            }
        }
    };
}

pub(crate) use section;
