//! The rules of the model gateway: requests, responses, the wires of providers, and the choice among providers.
//!
//! An [`operation`] names the task, a [`front`] is the API of the client, a wire the API of the provider. [`request`]
//! holds a checked request, [`reply`] the way from a wire to a front, [`usage`] and [`metadata`] the parts of a
//! response. [`dialects`] are the ways to say a chat, [`chat`] holds its turns and its pieces, [`embeddings`] the encodings
//! of vectors, [`images`] how images are drawn, [`speech`] the formats of audio, [`videos`] the jobs that make videos,
//! [`healing`] the repair of JSON, [`fronts`] the public shapes, [`wires`] the providers' shapes, [`routing`] the plan,
//! [`cloud_credentials`] how clouds let callers sign in, [`reply_cache`] replies that are replayed, [`exported_content`] what the export of logs has of calls, [`search_loop`] searches of the web for models that have none. [`prompts`] are templates of chat requests, [`managed`] is a request that
//! names one, [`stateful`] one that needs [`stored_responses`].
//!
//! Layers: [`operation`], [`usage`], [`parameter`] and [`dialects`] · [`chat`], [`embeddings`], [`images`], [`rerank`],
//! [`moderations`], [`speech`], [`transcriptions`], [`ocr`], [`search`], [`typed_decisions`], [`videos`] and [`prompts`] ·
//! [`request`], [`reply`] and [`front`] ·
//! [`routing`] · [`fronts`] and [`wires`], which never know each other.

pub mod chat;
mod check;
pub mod cloud_credentials;
pub mod dialects;
pub mod embeddings;
pub mod exported_content;
pub mod front;
pub mod fronts;
pub mod healing;
pub mod hosts;
pub mod images;
pub mod judge_words;
mod key_shape;
pub mod managed;
pub mod metadata;
pub mod moderations;
mod numbering;
pub mod ocr;
pub mod operation;
pub mod parameter;
pub mod prompts;
pub mod reply;
pub mod reply_cache;
pub mod request;
pub mod rerank;
pub mod routing;
pub mod search;
pub mod search_loop;
pub mod search_words;
mod sink_event;
pub mod speech;
pub mod stateful;
pub mod stored_responses;
pub mod transcriptions;
pub mod typed_decisions;
pub mod usage;
pub mod videos;
pub mod wires;
