// A graph service behind its limits, by the urql client; see ../README.md. The sandbox service echoes queries.
import { createRequire } from "node:module";

const { Client, fetchExchange, gql } = createRequire(process.cwd() + "/")("@urql/core");

const url = process.env.WEIRGATE_URL ?? "http://127.0.0.1:8080";
const client = new Client({
  url: `${url}/content/v2?auth=${process.env.WEIRGATE_GRAPH_KEY ?? "sandbox"}`,
  exchanges: [fetchExchange],
  preferGetMethod: false,
});

const QUERY = gql`
  query Article($name: String!) {
    Article(limit: 10) {
      author(name: $name)
      total
    }
  }
`;

const { data, error } = await client.query(QUERY, { name: "Ada" }).toPromise();
if (error) {
  // A refusal is a JSON 429, not a GraphQL error: wait as long as it says.
  const { response } = error;
  console.log(error.message, response?.status, "retry after", response?.headers.get("retry-after"), "s");
  process.exit(1);
}
console.log(JSON.stringify(data));
