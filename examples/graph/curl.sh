#!/bin/sh
# The limits of a graph service by curl; see ../README.md. The sandbox service echoes queries.
set -eu
url=${WEIRGATE_URL:-http://127.0.0.1:8080}
auth=${WEIRGATE_GRAPH_KEY:-sandbox}

echo "# A query. X-RateLimit-Limit and X-RateLimit-Window say what its tenant may ask for."
curl -sSi "$url/content/v2?auth=$auth" -H 'Content-Type: application/json' -d '{"query": "{ hello(name: \"Ada\") }"}'
printf '\n\n'

echo "# Content types may be written ten times in ten seconds. The sandbox has none and answers 404; the eleventh request"
echo "# never reaches it. These requests prove no tenant, so they count for the client's address."
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
for _ in 1 2 3 4 5 6 7 8 9 10 11; do
    curl -sS -o "$answer" -w '%{http_code} ' -X PUT "$url/api/content/v3/types?id=example" -d '{}'
done
printf '\n'
cat "$answer"
printf '\n'
