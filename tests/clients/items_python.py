"""Acceptance of the gateway by the clients of the APIs whose shapes it has taken over: `cohere` (reranking), `mistralai`
(OCR) and `perplexity` (web search), with nothing changed but the address.

Environment: SERVER_URL (without /v1), API_KEY; the models are those of the model sandbox. Arguments: the checks to run;
without any, all. One line per check on stdout; exit 1 when one failed, 2 for an unknown name.
"""

import os

import cohere
import perplexity
from mistralai.client import Mistral
from mistralai.client.errors import SDKError

import checks

SERVER_URL = os.environ["SERVER_URL"]
API_KEY = os.environ.get("API_KEY", "none")
SEARCH_MODEL = {"model": "sandbox-search"}
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def rerank():
    client = cohere.Client(api_key=API_KEY, base_url=SERVER_URL)
    documents = ["of dogs", {"text": "a cat sleeps"}, "the cat"]
    answer = client.rerank(
        model="sandbox-rerank", query="a cat", documents=documents, top_n=2, return_documents=True
    )
    equal([(result.index, result.relevance_score) for result in answer.results], [(1, 1.0), (2, 0.5)])
    equal(answer.results[0].document.text, "a cat sleeps")
    assert answer.id and answer.meta.billed_units.input_tokens > 0, answer


def rerank_refused():
    client = cohere.Client(api_key=API_KEY, base_url=SERVER_URL)
    call = lambda: client.rerank(model="sandbox-rerank", query="", documents=["a"])
    error = raises(cohere.BadRequestError, call)
    equal(error.body["error"]["param"], "query")


def mistral():
    return Mistral(api_key=API_KEY, server_url=SERVER_URL)


def ocr():
    document = {"type": "document_url", "document_url": "https://example.com/a.pdf"}
    answer = mistral().ocr.process(model="sandbox-ocr", document=document, pages=[0, 3])
    equal([page.index for page in answer.pages], [0, 3])
    equal(answer.pages[1].markdown, "# Page 3\n\nof https://example.com/a.pdf")
    equal((answer.model, answer.usage_info.pages_processed), ("sandbox/sandbox-ocr", 2))
    equal(answer.document_annotation, None)


def ocr_annotated():
    schema = {"name": "receipt", "schema": {"type": "object"}}
    answer = mistral().ocr.process(
        model="sandbox-ocr",
        document={"type": "image_url", "image_url": {"url": PIXEL}},
        include_image_base64=True,
        table_format="markdown",
        document_annotation_format={"type": "json_schema", "json_schema": schema},
    )
    equal((len(answer.pages), answer.document_annotation), (1, "{}"))


def ocr_refused():
    document = {"type": "document_url", "document_url": "https://127.0.0.1/a.pdf"}
    call = lambda: mistral().ocr.process(model="sandbox-ocr", document=document)
    error = raises(SDKError, call)
    equal(error.status_code, 400)
    assert "document.document_url" in error.body, error.body


def searching():
    return perplexity.Perplexity(api_key=API_KEY, base_url=f"{SERVER_URL}/v1")


def search():
    query = ["cats", "dogs"]
    answer = searching().search.create(
        query=query, max_results=2, country="US", search_domain_filter=["example.com"], extra_body=SEARCH_MODEL
    )
    titles = [result.title for result in answer.results]
    equal(titles, ["Page 1 about cats", "Page 2 about cats", "Page 1 about dogs", "Page 2 about dogs"])
    equal((answer.results[0].date, answer.server_time), ("2026-01-31", "2026-02-28T00:00:00Z"))
    assert answer.id, answer


def search_refused():
    call = lambda: searching().search.create(query="cats", search_type="people", extra_body=SEARCH_MODEL)
    error = raises(perplexity.BadRequestError, call)
    equal(error.body["error"]["param"], "search_type")


CHECKS = [rerank, rerank_refused, ocr, ocr_annotated, ocr_refused, search, search_refused]

if __name__ == "__main__":
    checks.main(CHECKS)
