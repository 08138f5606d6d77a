// The model gateway by the OpenAI client. Needs WEIRGATE_KEY; see ../README.md.
import { createRequire } from "node:module";

const { default: OpenAI } = createRequire(process.cwd() + "/")("openai");

const client = new OpenAI({
  baseURL: (process.env.WEIRGATE_URL ?? "http://127.0.0.1:8080") + "/v1",
  apiKey: process.env.WEIRGATE_KEY,
});
const model = process.env.MODEL ?? "sandbox-chat";
const messages = [{ role: "user", content: "Hello" }];

const answer = await client.chat.completions.create({ model, messages });
console.log(answer.choices[0].message.content);
console.log(`  served by ${answer.metadata.used_provider} for ${answer.usage.cost} USD`);

const stream = await client.chat.completions.create({ model, messages, stream: true });
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
process.stdout.write("\n");

// A stream that breaks off never looks complete: the client throws.
try {
  const broken = await client.chat.completions.create({ model: "sandbox-cut", messages, stream: true });
  for await (const _ of broken);
} catch (error) {
  console.log(`broken off: ${error.code}`);
}
