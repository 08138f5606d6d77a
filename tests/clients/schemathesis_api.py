"""schemathesis over /v1/openapi.json: random requests, some of them wrong, with and without keys.

No answer may be a 500, have a status or a type that the document does not name, or break its schema; what the document
forbids has to be refused. Environment: BASE_URL (without /v1), API_KEY, SDK_KEY, CALLS (how many, over all operations),
SEED, ONLY (the beginning of operation ids).
"""

import collections
import json
import os
import random
import sys

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, strategies
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core import NOT_SET
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

BASE_URL = os.environ["BASE_URL"]
CALLS = int(os.environ.get("CALLS", "400"))
SEED = int(os.environ.get("SEED", "1"))
ONLY = os.environ.get("ONLY", "")
# The operations of the graph service have one description, and their answers are the service's.
WEIGHTS = {"Gateway": 1.0, "Models": 4.0, "Decisions": 2.0, "MCP": 0.5, "Graph": 0.1}
# Longer than the slowest call of a loaded machine; the sandbox answers at once.
TIMEOUT_S = 60

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


def weight(operation):
    return WEIGHTS[operation.definition.raw["tags"][0]]


def is_endless(operation):
    """A stream that ends with the process."""
    content = operation.definition.raw["responses"].get("200", {}).get("content", {})
    return list(content) == ["text/event-stream"]


def example_of(operation):
    body = operation.definition.raw.get("requestBody", {}).get("content", {})
    return body.get("application/json", {}).get("example", {})


def credentials(random_source):
    """Good ones mostly; else none, or some that nobody has."""
    kind = random_source.random()
    if kind < 0.04:
        return {}
    if kind < 0.08:
        return {"x-api-key": "wg_" + "0" * 43, "X-Platform-SDK-Key": "nobody"}
    return {"x-api-key": os.environ["API_KEY"], "X-Platform-SDK-Key": os.environ["SDK_KEY"]}


def aim(case, operation, random_source):
    """A model that nobody serves ends a request early, so most requests name one that the sandbox serves."""
    model = example_of(operation).get("model")
    named = case.body.get("model") if isinstance(case.body, dict) else None
    # One that is wrong on purpose stays.
    is_allowed = isinstance(named, str) and 0 < len(named) <= 512 and named.isprintable()
    if model and is_allowed and random_source.random() < 0.8:
        case.body["model"] = model


class Run:
    def __init__(self):
        self.session = requests.Session()
        self.random = random.Random(SEED)
        self.calls = 0
        self.statuses = collections.Counter()
        self.failures = collections.defaultdict(list)

    def call(self, case, operation):
        aim(case, operation, self.random)
        headers = credentials(self.random)
        self.calls += 1
        response = case.call(base_url=BASE_URL, headers=headers, session=self.session, timeout=TIMEOUT_S)
        self.statuses[response.status_code] += 1
        checks = CHECKS
        # A target of 64 KiB is beyond what the HTTP library reads, which answers by itself.
        if response.status_code == 400 and len(response.request.url) > 1 << 16:
            return
        # What refuses a request may come before the body is read.
        if response.status_code in (401, 403, 404, 408, 410, 413, 414, 429, 431):
            checks = [check for check in CHECKS if check is not negative_data_rejection]
        try:
            case.validate_response(response, checks=checks, headers=headers)
        except FailureGroup as group:
            for failure in group.exceptions:
                self.note(case, operation, response, failure)

    def note(self, case, operation, response, failure):
        body = case.body if case.body is not NOT_SET else None
        try:
            body = json.dumps(body, ensure_ascii=True)
        except (TypeError, ValueError):
            body = repr(body)
        said = response.text[:400]
        told = f"{failure.title}: {failure.message[:600]}\n    {case.method} {case.formatted_path} {case.query} {case.headers}"
        told += f"\n    {body[:1500]}\n    {response.status_code} {said}"
        self.failures[(operation.definition.raw["operationId"], failure.title)].append(told)


def test(run, operation, count):
    modes = [operation.as_strategy(generation_mode=GenerationMode.POSITIVE)]
    if operation.body or operation.query or operation.headers or operation.path_parameters:
        modes.append(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))

    @hypothesis.seed(SEED)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=strategies.one_of(*modes))
    def each(case):
        run.call(case, operation)

    each()


def main():
    schema = schemathesis.openapi.from_url(f"{BASE_URL}/v1/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    operations = [it for it in operations if not is_endless(it)]
    operations = [it for it in operations if it.definition.raw["operationId"].startswith(ONLY)]
    whole = sum(weight(it) for it in operations)
    run = Run()
    for operation in operations:
        before, known = run.calls, len(run.failures)
        test(run, operation, max(1, round(CALLS * weight(operation) / whole)))
        word = "ok" if len(run.failures) == known else "FAILED"
        print(word, operation.definition.raw["operationId"], run.calls - before, flush=True)
    for (name, title), told in run.failures.items():
        print(f"\n{name}: {title} ({len(told)} times)")
        for one in told[:3]:
            print("  " + one)
    print(f"{run.calls} calls: {dict(run.statuses)}")
    sys.exit(1 if run.failures else 0)


main()
