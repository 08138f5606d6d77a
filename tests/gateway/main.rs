//! The gateway from outside: every test talks to it over a socket. Modules mirror the rows of the route table.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "support code is shared by several test binaries"
)]

#[path = "../support/mod.rs"]
mod support;

mod activate;
mod agent_texts;
mod bad_chat;
mod bad_input;
mod bandits;
mod batch;
mod browser;
mod byok;
mod cache_breakpoints;
mod canaries;
mod chat_completions;
mod clients;
mod config;
mod connections;
mod crashes;
mod credits;
mod datafile;
mod debug_keys;
mod decide;
mod delete_video;
mod drawn_images;
mod embeddings;
mod endpoints;
mod errors_apart;
mod event_stream;
mod experiments;
mod explain_decision;
mod fallback;
mod framed_bodies;
mod front;
mod frozen;
mod graph;
mod graph_limits;
mod healing;
mod healing_ends;
mod health;
mod hedging;
mod http2;
mod image_edits;
mod images;
mod install;
mod key;
mod keys;
mod ledger;
mod limits;
mod lookup;
mod mcp;
mod mcp_authorize;
mod mcp_consent;
mod mcp_documents_preflight;
mod mcp_end;
mod mcp_info;
mod mcp_oauth_preflight;
mod mcp_oauth_server;
mod mcp_oauth_server_of_path;
mod mcp_preflight;
mod mcp_register;
mod mcp_resource;
mod mcp_resource_of_path;
mod mcp_revoke;
mod mcp_token;
mod media;
mod memory;
mod model;
mod models;
mod moderations;
mod money;
mod ocr;
mod ofrep_flag;
mod ofrep_flags;
mod opaque_state;
mod openapi;
mod operations;
mod overload;
mod overrides;
mod process;
mod prompt;
mod prompts;
mod quotas;
mod refused_calls;
mod regions;
mod render_prompt;
mod reply_cache;
mod rerank;
mod responses_wire;
mod retry_budget;
mod routing;
mod rules;
mod sandbox;
mod save;
mod schemas;
mod search;
mod secrets;
mod send_odp_event;
mod sessions;
mod settlement;
mod shared;
mod shared_cluster;
mod shared_fleet;
mod shared_graph;
mod shared_health;
mod shared_leases;
mod shared_limits;
mod shared_profiles;
mod shared_quotas;
mod shared_replies;
mod shared_segments;
mod shared_sessions;
mod shared_windows;
mod slow_clients;
mod speech;
mod store;
mod store_outage;
mod streams;
mod support_selftest;
mod systemone;
mod tiers;
mod tls;
mod token;
mod track;
mod transcriptions;
mod translations;
mod upgrade;
mod uploads;
mod usage;
mod usage_breakdown;
mod usage_reports;
mod variations;
mod video;
mod video_content;
mod video_list;
mod videos;
mod web_search;
mod webhook;
