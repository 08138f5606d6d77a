#!/bin/sh
# The model gateway by curl. Needs WEIRGATE_KEY; see ../README.md.
set -eu
url=${WEIRGATE_URL:-http://127.0.0.1:8080}
key=${WEIRGATE_KEY:?the key that make run printed}

ask() {
    curl -sS "$url$1" -H "Authorization: Bearer $key" -H 'Content-Type: application/json' ${2:+-d "$2"}
    printf '\n\n'
}

echo "# A whole answer. usage.cost is what it cost, metadata.routing who was tried."
ask /v1/chat/completions '{"model": "sandbox-chat", "messages": [{"role": "user", "content": "Hello"}]}'

echo "# A stream. The last chunk carries usage and metadata, then comes [DONE]."
ask /v1/chat/completions '{"model": "sandbox-chat", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}'

echo "# A provider that breaks off: an error event with the usage so far, and no [DONE]."
ask /v1/chat/completions '{"model": "sandbox-cut", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}'

echo "# A provider that fails, with no other to fall back to: a status and a code by cause."
ask /v1/chat/completions '{"model": "sandbox-500", "messages": [{"role": "user", "content": "Hello"}]}'

echo "# The models, one entry per provider."
ask '/v1/models?mapped=true'

echo "# What the key has spent."
ask /v1/key
