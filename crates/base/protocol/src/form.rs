//! Types whose members the document of the interface shows side by side.

/// Shows a type in the document as another one, which has all its members.
macro_rules! has_form {
    ($type:ident, $form:ident) => {
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $form::schema()
            }
        }

        impl utoipa::ToSchema for $type {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
                $form::schemas(schemas);
            }
        }
    };
}

pub(crate) use has_form;
