//! The hosts of clouds, as strict as their vendors, and a gateway in front of all of them: a row for each wire of a cloud.
//!
//! [`strict`] refuses what a vendor refuses, in the vendor's words; [`signature`] computes a signature anew; [`quirks`] says an
//! answer as the cloud does. What a model says is decided by a script, as in [`super::scripted`].

pub mod quirks;
pub mod signature;
pub mod strict;

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::boot::Gateway;
use super::script::Reply;
use super::scripted::cloud_wires::{CONVERSE, V2};
use super::scripted::wires::{BLOCKS, CHAT, ITEMS, PARTS, Wire};
use super::scripted::{Asked, Said, Turn};
use super::upstream::{Received, Upstream};

/// Whose host it is: in whose words it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    Azure,
    Bedrock,
    ClaudeOnAws,
    Vertex,
    Cohere,
}

/// In whose words a host is asked and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Chat,
    Items,
    Blocks,
    Parts,
    Converse,
    V2,
}

/// How requests show who sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignIn {
    /// The bare key, in this header.
    Header(&'static str),
    /// The key as bearer.
    Key,
    /// A token of the cloud as bearer.
    Token,
    /// A signature.
    Signature,
}

/// A wire of a cloud.
#[derive(Debug)]
pub struct CloudWire {
    /// The id of its model and the name of its provider.
    pub id: &'static str,
    pub vendor: Vendor,
    pub dialect: Dialect,
    pub sign_in: SignIn,
    /// The lines of its provider's table.
    settings: &'static str,
    /// The `wire` of its mapping; empty: the usual one.
    wire: &'static str,
    /// What the cloud calls the model.
    pub model: &'static str,
    /// Whether the body names the model.
    pub names_model: bool,
    /// The paths of whole answers and of streams.
    pub paths: [&'static str; 2],
}

pub const KEY: &str = "cloud-key";
pub const TOKEN: &str = "cloud-token";
pub const REGION: &str = "eu-west-1";
pub const AWS_ID: &str = "AKIACLOUD";
pub const AWS_SECRET: &str = "cloud/secret+key";
pub const AWS_SESSION: &str = "cloud//session==";
pub const WORKSPACE: &str = "wrkspc_1";

const AZURE: &str = "kind = \"azure\"\n";
const DATED: &str = "kind = \"azure\"\napi = \"2024-10-21\"\n";
const FOUNDRY: &str = "kind = \"azure\"\ncredentials = \"entra\"\n";
const BEDROCK: &str = "kind = \"bedrock\"\nregion = \"eu-west-1\"\ncredentials = \"aws\"\n";
const KEYED_BEDROCK: &str = "kind = \"bedrock\"\nregion = \"eu-west-1\"\n";
const CLAUDE_ON_AWS: &str = "kind = \"aws-anthropic\"\nregion = \"eu-west-1\"\n\
     workspace = \"wrkspc_1\"\n";
const VERTEX: &str = "kind = \"vertex\"\nproject = \"my-project\"\nregion = \"europe-west1\"\n\
     credentials = \"google\"\n";
const COHERE: &str = "kind = \"cohere\"\n";

/// Every wire of every cloud.
pub static CLOUDS: [CloudWire; 13] = [
    CloudWire {
        id: "azure-chat",
        vendor: Vendor::Azure,
        dialect: Dialect::Chat,
        sign_in: SignIn::Header("api-key"),
        settings: AZURE,
        wire: "",
        model: "my gpt",
        names_model: true,
        paths: ["/openai/v1/chat/completions"; 2],
    },
    CloudWire {
        id: "azure-dated",
        vendor: Vendor::Azure,
        dialect: Dialect::Chat,
        sign_in: SignIn::Header("api-key"),
        settings: DATED,
        wire: "",
        model: "my/gpt 5",
        names_model: true,
        paths: ["/openai/deployments/my%2Fgpt%205/chat/completions?api-version=2024-10-21"; 2],
    },
    CloudWire {
        id: "azure-responses",
        vendor: Vendor::Azure,
        dialect: Dialect::Items,
        sign_in: SignIn::Header("api-key"),
        settings: DATED,
        wire: "responses",
        model: "my gpt",
        names_model: true,
        paths: ["/openai/v1/responses"; 2],
    },
    CloudWire {
        id: "azure-messages",
        vendor: Vendor::Azure,
        dialect: Dialect::Blocks,
        sign_in: SignIn::Token,
        settings: FOUNDRY,
        wire: "messages",
        model: "my-claude",
        names_model: true,
        paths: ["/anthropic/v1/messages"; 2],
    },
    CloudWire {
        id: "bedrock-converse",
        vendor: Vendor::Bedrock,
        dialect: Dialect::Converse,
        sign_in: SignIn::Signature,
        settings: BEDROCK,
        wire: "",
        model: "arn:aws:bedrock:eu-west-1:1:application-inference-profile/a1",
        names_model: false,
        paths: [
            "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fa1/converse",
            "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fa1/converse-stream",
        ],
    },
    CloudWire {
        id: "bedrock-chat",
        vendor: Vendor::Bedrock,
        dialect: Dialect::Chat,
        sign_in: SignIn::Signature,
        settings: BEDROCK,
        wire: "chat",
        model: "openai.gpt-oss-120b-1:0",
        names_model: true,
        paths: ["/openai/v1/chat/completions"; 2],
    },
    CloudWire {
        id: "bedrock-responses",
        vendor: Vendor::Bedrock,
        dialect: Dialect::Items,
        sign_in: SignIn::Key,
        settings: KEYED_BEDROCK,
        wire: "responses",
        model: "us.openai.gpt-5.6-sol",
        names_model: true,
        paths: ["/openai/v1/responses"; 2],
    },
    CloudWire {
        id: "bedrock-messages",
        vendor: Vendor::Bedrock,
        dialect: Dialect::Blocks,
        sign_in: SignIn::Signature,
        settings: BEDROCK,
        wire: "messages",
        model: "eu.anthropic.claude-sonnet-5",
        names_model: true,
        paths: ["/anthropic/v1/messages"; 2],
    },
    CloudWire {
        id: "claude-on-aws",
        vendor: Vendor::ClaudeOnAws,
        dialect: Dialect::Blocks,
        sign_in: SignIn::Header("x-api-key"),
        settings: CLAUDE_ON_AWS,
        wire: "",
        model: "claude-sonnet-5",
        names_model: true,
        paths: ["/v1/messages"; 2],
    },
    CloudWire {
        id: "vertex-gemini",
        vendor: Vendor::Vertex,
        dialect: Dialect::Parts,
        sign_in: SignIn::Token,
        settings: VERTEX,
        wire: "",
        model: "gemini-3",
        names_model: false,
        paths: [
            "/v1/projects/my-project/locations/europe-west1/publishers/google/models/gemini-3:generateContent",
            "/v1/projects/my-project/locations/europe-west1/publishers/google/models/gemini-3:streamGenerateContent?alt=sse",
        ],
    },
    CloudWire {
        id: "vertex-messages",
        vendor: Vendor::Vertex,
        dialect: Dialect::Blocks,
        sign_in: SignIn::Token,
        settings: VERTEX,
        wire: "messages",
        model: "claude-sonnet-4-5@20250929",
        names_model: false,
        paths: [
            "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5%4020250929:rawPredict",
            "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5%4020250929:streamRawPredict",
        ],
    },
    CloudWire {
        id: "vertex-chat",
        vendor: Vendor::Vertex,
        dialect: Dialect::Chat,
        sign_in: SignIn::Token,
        settings: VERTEX,
        wire: "chat",
        model: "meta/llama-5",
        names_model: true,
        paths: ["/v1/projects/my-project/locations/europe-west1/endpoints/openapi/chat/completions";
            2],
    },
    CloudWire {
        id: "cohere",
        vendor: Vendor::Cohere,
        dialect: Dialect::V2,
        sign_in: SignIn::Key,
        settings: COHERE,
        wire: "",
        model: "command-a",
        names_model: true,
        paths: ["/v2/chat"; 2],
    },
];

/// Returns the row of an id.
pub fn cloud(id: &str) -> &'static CloudWire {
    let mut found = CLOUDS.iter().filter(|cloud| cloud.id == id);
    found.next().unwrap_or_else(|| panic!("no cloud is {id}"))
}

impl CloudWire {
    fn speaks(&self) -> Wire {
        match self.dialect {
            Dialect::Chat => CHAT,
            Dialect::Items => ITEMS,
            Dialect::Blocks => BLOCKS,
            Dialect::Parts => PARTS,
            Dialect::Converse => CONVERSE,
            Dialect::V2 => V2,
        }
    }

    /// The reply that says a turn, as this cloud says it.
    pub fn reply(&self, asked: &Asked, turn: &Turn) -> Reply {
        quirks::said_by(self, self.speaks().reply(asked, turn), asked.is_stream)
    }

    /// The mapping of a model to it.
    fn mapping(&self) -> String {
        let wire = match self.wire {
            "" => String::new(),
            wire => format!("wire = \"{wire}\"\n"),
        };
        format!(
            "[[models.providers]]\nprovider = \"{}\"\nname = \"{}\"\n{wire}input_price = \"1\"\noutput_price = \"2\"\nmax_output = 32000\n\
             capabilities = [\"streaming\", \"cancellation\", \"tools\", \"parallel_tools\", \"forced_tools\", \"vision\", \"documents\", \"json_object\", \"json_schema\", \"reasoning\"]\n",
            self.id, self.model
        )
    }
}

/// What a host has refused: its cloud, and why.
type Refusals = Arc<Mutex<Vec<String>>>;

/// A host for each row, each on its own, and the source of their tokens.
pub struct CloudHosts {
    hosts: Vec<Upstream>,
    tokens: Upstream,
    /// A provider of the convention behind all clouds.
    pub behind: Upstream,
    refusals: Refusals,
}

impl CloudHosts {
    /// Starts the hosts, which do what a script says with a request that they would accept.
    pub fn start(
        script: impl Fn(&'static CloudWire, &Asked) -> Said + Send + Sync + 'static,
    ) -> CloudHosts {
        let (script, refusals) = (Arc::new(script), Refusals::default());
        let hosts = CLOUDS.iter().map(|cloud| {
            let (script, refusals) = (script.clone(), refusals.clone());
            Upstream::answering(move |request| {
                if let Err(refused) = strict::check(cloud, request) {
                    let why = format!("{}: {}", cloud.id, refused.why);
                    refusals.lock().unwrap().push(why);
                    return refused.reply;
                }
                let asked = cloud.speaks().read(request);
                match script(cloud, &asked) {
                    Said::Reply(reply) => reply,
                    Said::Turn(turn) => cloud.reply(&asked, &turn),
                }
            })
        });
        CloudHosts {
            hosts: hosts.collect(),
            tokens: Upstream::answering(token),
            behind: Upstream::answering(|request| {
                let asked = CHAT.read(request);
                CHAT.reply(&asked, &Turn::text("said by the one behind"))
            }),
            refusals,
        }
    }

    /// The host of a row.
    pub fn host(&self, id: &str) -> &Upstream {
        let at = CLOUDS.iter().position(|cloud| cloud.id == id);
        &self.hosts[at.unwrap()]
    }

    /// What was refused so far, which is then forgotten.
    pub fn refusals(&self) -> Vec<String> {
        std::mem::take(&mut self.refusals.lock().unwrap())
    }

    /// A gateway in front of all: a model for each row, one for each with another provider behind it, whose name ends in
    /// `-or-behind`, and more.
    pub fn gateway(&self, more: &str, more_models: &str) -> Gateway {
        self.gateway_with(more, more_models, &[])
    }

    /// The same with more variables in its environment, which come first.
    pub fn gateway_with(
        &self,
        more: &str,
        more_models: &str,
        variables: &[(&str, &str)],
    ) -> Gateway {
        let providers = CLOUDS.iter().map(|cloud| {
            let keys = match cloud.sign_in {
                SignIn::Header(_) | SignIn::Key => "keys = [{ env = \"CLOUD_KEY\" }]\n",
                SignIn::Token | SignIn::Signature => "",
            };
            let (id, url, settings) = (cloud.id, self.host(cloud.id).url(), cloud.settings);
            format!("[providers.{id}]\nbase_url = \"{url}\"\n{keys}{settings}")
        });
        let providers: String = providers.collect();
        let behind = self.behind.url();
        let toml = format!(
            "{providers}[providers.behind]\nkind = \"openai-compatible\"\nbase_url = \"{behind}/v1\"\nkeys = []\n{more}"
        );
        let last = "[[models.providers]]\nprovider = \"behind\"\nname = \"up\"\ninput_price = \"1000\"\noutput_price = \"1000\"\n\
                    capabilities = [\"streaming\", \"tools\"]\n";
        let models = CLOUDS.iter().map(|cloud| {
            let (id, own) = (cloud.id, cloud.mapping());
            format!(
                "[[models]]\nid = \"{id}\"\n{own}[[models]]\nid = \"{id}-or-behind\"\n{own}{last}"
            )
        });
        let models = models.collect::<String>() + more_models;
        let tokens = self.tokens.address().to_string();
        let identity = self.tokens.url();
        let own = [
            ("CLOUD_KEY", KEY),
            ("AWS_ACCESS_KEY_ID", AWS_ID),
            ("AWS_SECRET_ACCESS_KEY", AWS_SECRET),
            ("AWS_SESSION_TOKEN", AWS_SESSION),
            ("GCE_METADATA_HOST", &tokens),
            ("AZURE_POD_IDENTITY_AUTHORITY_HOST", &identity),
        ];
        let is_other = |(name, _): &(&str, &str)| variables.iter().all(|(other, _)| name != other);
        let own = own.into_iter().filter(is_other);
        let variables: Vec<_> = variables.iter().copied().chain(own).collect();
        Gateway::start_with_env(&toml, &models, &variables)
    }
}

/// A model whose candidates are these rows, the first first.
pub fn model_of(id: &str, clouds: &[&str]) -> String {
    let mappings = clouds.iter().enumerate().map(|(at, id)| {
        let price = format!("input_price = \"{}\"", at + 1);
        cloud(id)
            .mapping()
            .replacen("input_price = \"1\"", &price, 1)
    });
    let mappings: String = mappings.collect();
    format!("[[models]]\nid = \"{id}\"\n{mappings}")
}

/// The metadata servers of both clouds that give tokens.
fn token(request: &Received) -> Reply {
    let (path, header) = (&request.path, |name| request.header(name));
    let google = "/computeMetadata/v1/instance/service-accounts/default/token?";
    let azure = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=";
    let is_asked = request.method == "GET"
        && match path {
            path if path.starts_with(google) => header("metadata-flavor") == Some("Google"),
            path if path.starts_with(azure) => header("metadata") == Some("true"),
            _ => false,
        };
    if !is_asked {
        return Reply::json(400, "{}");
    }
    let body = json!({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"});
    Reply::json(200, body.to_string())
}
