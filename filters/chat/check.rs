//! The 400 rules of a chat completion request.
