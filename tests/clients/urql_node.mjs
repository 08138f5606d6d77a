// Acceptance of the graph limits by the real `@urql/core` npm client.
//
// Environment: GRAPH_URL (a service that echoes queries, behind the gateway), with the public key `wide`, and `narrow`,
// which may send one query in two seconds. Arguments: the checks to run; without any, all. Run it in the folder that
// holds node_modules. One line per check on stdout; exit 1 when one failed, 2 for an unknown name.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

import { main } from "./checks.mjs";

const { Client, fetchExchange, gql } = createRequire(process.cwd() + "/")("@urql/core");

const client = (options = {}) =>
  new Client({
    url: `${process.env.GRAPH_URL}?auth=wide`,
    exchanges: [fetchExchange],
    preferGetMethod: false,
    ...options,
  });

const ARTICLES = gql`
  query Articles($name: String!) {
    Article(limit: 10) {
      items {
        ...Title
        author(name: $name)
      }
      total
    }
  }
  fragment Title on Article {
    headline: Name
  }
`;
const EXPECTED = {
  Article: { items: { headline: "Name", author: "Ada" }, total: "total" },
};

const checks = {
  async query() {
    const { data, error } = await client().query(ARTICLES, { name: "Ada" }).toPromise();
    assert.equal(error, undefined);
    assert.deepEqual(data, EXPECTED);
  },

  async query_by_get() {
    const { data, error } = await client({ preferGetMethod: "force" })
      .query(ARTICLES, { name: "Ada" })
      .toPromise();
    assert.equal(error, undefined);
    assert.deepEqual(data, EXPECTED);
  },

  async key_in_header() {
    const fetchOptions = { headers: { authorization: "epi-single wide" } };
    const { data, error } = await client({ url: process.env.GRAPH_URL, fetchOptions })
      .query("{ a }", {})
      .toPromise();
    assert.equal(error, undefined);
    assert.deepEqual(data, { a: "a" });
  },

  async mutation() {
    const { data, error } = await client().mutation("mutation { set(to: 7) }", {}).toPromise();
    assert.equal(error, undefined);
    assert.deepEqual(data, { set: 7 });
  },

  async errors() {
    const { data, error } = await client().query("{ ...Nowhere }", {}).toPromise();
    assert.equal(data, undefined);
    assert.match(error.message, /no fragment Nowhere/);
  },

  async refusal() {
    const narrow = client({ url: `${process.env.GRAPH_URL}?auth=narrow` });
    const ask = () => narrow.query("{ a }", {}).toPromise();
    let refused = await ask();
    while (!refused.error) refused = await ask();
    const { response } = refused.error;
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("x-ratelimit-limit"), "1");
    assert.equal(response.headers.get("x-ratelimit-window"), "2");
    const wait = Number(response.headers.get("retry-after"));
    assert.ok(wait >= 1 && wait <= 2, `${wait}`);
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    const again = await ask();
    assert.equal(again.error, undefined);
    assert.deepEqual(again.data, { a: "a" });
  },
};

await main(checks);
