//! A slot for a value that another module prepares: `http` keeps ready header values in bodies of the board and in keys
//! this way, and neither of these needs to know its types.

use std::any::Any;
use std::sync::OnceLock;

/// A value of any one type, set once.
#[derive(Debug, Default)]
pub(crate) struct Attachment(OnceLock<Box<dyn Any + Send + Sync>>);

impl Attachment {
    pub(crate) fn new<T: Any + Send + Sync>(value: T) -> Self {
        Attachment(OnceLock::from(Box::new(value) as Box<dyn Any + Send + Sync>))
    }

    /// The value, if it has this type.
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }

    /// The value, made on the first call. A value of another type stays, and `make` then runs on every call.
    pub(crate) fn get_or_make<T: Any + Clone + Send + Sync>(&self, make: impl FnOnce() -> T) -> T {
        if let Some(value) = self.get::<T>() {
            return value.clone();
        }
        let made = make();
        // A failure means that another thread was first, with an equal value.
        let _ = self.0.set(Box::new(made.clone()));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_made_once_and_another_type_does_not_replace_it() {
        let slot = Attachment::default();
        assert_eq!(slot.get::<u32>(), None);
        assert_eq!(slot.get_or_make(|| 1_u32), 1);
        assert_eq!(slot.get_or_make(|| 2_u32), 1);
        assert_eq!(slot.get_or_make(|| "other"), "other");
        assert_eq!(slot.get::<u32>(), Some(&1));
        assert_eq!(Attachment::new(3_u8).get::<u8>(), Some(&3));
    }
}
