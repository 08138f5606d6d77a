#!/bin/sh
# Flag decisions by curl; see ../README.md.
set -eu
url=${WEIRGATE_URL:-http://127.0.0.1:8080}
sdk_key=${WEIRGATE_SDK_KEY:-sandbox}

ask() {
    curl -sS "$url$1" -H "X-Platform-SDK-Key: $sdk_key" -H 'Content-Type: application/json' ${2:+-d "$2"}
    printf '\n\n'
}

echo "# One flag: an object."
ask '/v1/decide?keys=dark_mode' '{"userId": "ada", "userAttributes": {"version": "2.1"}}'

echo "# All flags, and why: an array."
ask /v1/decide '{"userId": "ada", "userAttributes": {"country": "DE"}, "decideOptions": ["INCLUDE_REASONS"]}'

echo "# The older calls, by key."
ask '/v1/activate?featureKey=checkout&experimentKey=checkout_test' '{"userId": "ada", "userAttributes": {"country": "DE"}}'

echo "# A conversion."
ask '/v1/track?eventKey=purchase' '{"userId": "ada", "eventTags": {"revenue": 4200}}'

echo "# Several calls in one. Each brings its own credentials."
ask /v1/batch '{"operations": [
  {"method": "POST", "url": "/v1/decide", "operationID": "1", "parameters": {"keys": "dark_mode"},
   "headers": {"X-Platform-SDK-Key": "'"$sdk_key"'", "Content-Type": "application/json"}, "body": {"userId": "ada"}},
  {"method": "GET", "url": "/v1/config", "operationID": "2", "headers": {"X-Platform-SDK-Key": "'"$sdk_key"'"}}]}'

echo "# The same engine in OpenFeature's protocol."
ask /ofrep/v1/evaluate/flags/checkout '{"context": {"targetingKey": "ada", "country": "DE", "variableKey": "banner"}}'
