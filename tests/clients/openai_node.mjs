// Acceptance of the gateway by the real `openai` npm client.
//
// Environment: BASE_URL (with /v1), API_KEY, MODEL (answers as the model sandbox does), CUT_MODEL (breaks off
// in mid-stream), FLAKY_MODEL (its first call fails with 503, the next succeeds), EMBEDDING_MODEL (answers with two
// vectors), IMAGE_MODEL (draws as the model sandbox does), SPEECH_MODEL (speaks). `sandbox-embedding` takes two inputs at
// once. Arguments: the checks to run; without any, all. Run it in the folder that holds node_modules. One line per check on
// stdout; exit 1
// when one failed, 2 for an unknown name.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

import { main } from "./checks.mjs";

const { default: OpenAI, toFile } = createRequire(process.cwd() + "/")("openai");

const MODEL = process.env.MODEL ?? "sandbox-chat";
const CUT_MODEL = process.env.CUT_MODEL ?? "sandbox/sandbox-cut";
const IMAGE_MODEL = process.env.IMAGE_MODEL ?? "sandbox-image";
const FLAKY_MODEL = process.env.FLAKY_MODEL ?? "flaky";
const EMBEDDING_MODEL = process.env.EMBEDDING_MODEL ?? "vectors";
const SPLIT_MODEL = "sandbox-embedding";
const SPEECH_MODEL = process.env.SPEECH_MODEL ?? "sandbox-speech";
const TRANSCRIPTION_MODEL = process.env.TRANSCRIPTION_MODEL ?? "sandbox-transcription";

function client(options = {}) {
  const apiKey = process.env.API_KEY ?? "none";
  return new OpenAI({ baseURL: process.env.BASE_URL, apiKey, timeout: 30_000, ...options });
}

/** A client that counts the calls it makes. */
function counting() {
  const calls = { made: 0 };
  const counted = (url, init) => {
    calls.made += 1;
    return fetch(url, init);
  };
  return [client({ fetch: counted }), calls];
}

const user = (content) => [{ role: "user", content }];
const create = (request, using = client()) =>
  using.chat.completions.create({ model: MODEL, ...request });

const tool = (name) => ({
  type: "function",
  function: {
    name,
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city"],
      additionalProperties: false,
    },
  },
});
const TOOLS = [tool("get_weather"), tool("get_time")];

async function all(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const names = (message) => message.tool_calls.map((call) => call.function.name);
const members = (call) => Object.keys(JSON.parse(call.function.arguments)).sort();

/** A second of silence. */
function wav() {
  const head = Buffer.alloc(44);
  head.write("RIFF");
  head.writeUInt32LE(16036, 4);
  head.write("WAVEfmt ", 8);
  [16, 0x10001, 8000, 16000, 0x100002].forEach((value, at) => head.writeUInt32LE(value, 16 + 4 * at));
  head.write("data", 36);
  head.writeUInt32LE(16000, 40);
  return new File([head, Buffer.alloc(16000)], "a.wav", { type: "audio/wav" });
}

const checks = {
  async transcriptions() {
    const { transcriptions } = client().audio;
    const text = "The recording has 16044 bytes.";
    const options = { model: TRANSCRIPTION_MODEL, file: wav() };
    const answer = await transcriptions.create({ ...options, language: "en" });
    assert.equal(answer.text, text);
    assert.deepEqual(answer.usage, { type: "duration", seconds: 2 });
    const timed = { response_format: "verbose_json", timestamp_granularities: ["segment"] };
    const verbose = await transcriptions.create({ ...options, ...timed });
    assert.equal(verbose.segments[0].text, text);
    assert.equal(await transcriptions.create({ ...options, response_format: "text" }), `${text}\n`);
    const vtt = await transcriptions.create({ ...options, response_format: "vtt" });
    assert.ok(vtt.startsWith("WEBVTT\n\n00:00:00.000 --> "), vtt);
    let streamed = "";
    let last;
    for await (const event of await transcriptions.create({ ...options, stream: true })) {
      if (event.type === "transcript.text.delta") streamed += event.delta;
      last = event;
    }
    assert.equal(streamed, text);
    assert.equal(last.type, "transcript.text.done");
  },

  async translations() {
    const options = { model: TRANSCRIPTION_MODEL, file: wav() };
    const answer = await client().audio.translations.create(options);
    assert.equal(answer.text, "The recording has 16044 bytes.");
    const unknown = { ...options, response_format: "diarized_json" };
    const refused = client().audio.translations.create(unknown);
    await assert.rejects(refused, (error) => error.status === 400 && error.param === "response_format");
  },

  async speech() {
    const options = { model: SPEECH_MODEL, voice: "alloy", input: "one two", response_format: "wav" };
    const answer = await client().audio.speech.create(options);
    assert.equal(answer.headers.get("content-type"), "audio/wav");
    const bytes = Buffer.from(await answer.arrayBuffer());
    assert.equal(bytes.subarray(0, 4).toString(), "RIFF");
  },

  async videos() {
    const { videos } = client();
    const ordered = await videos.create({ model: "sandbox-video", prompt: "a weir", seconds: "4" });
    assert.deepEqual([ordered.object, ordered.status, ordered.size], ["video", "queued", "1280x720"]);
    let job = ordered;
    for (let looks = 0; looks < 100 && job.status !== "completed"; looks += 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      job = await videos.retrieve(ordered.id);
    }
    assert.equal(job.status, "completed");
    const content = Buffer.from(await (await videos.downloadContent(ordered.id)).arrayBuffer());
    assert.deepEqual([content.length, content.subarray(4, 8).toString()], [4 * 32768, "ftyp"]);
    assert.equal((await videos.list()).data[0].id, ordered.id);
    assert.equal((await videos.delete(ordered.id)).deleted, true);
    await assert.rejects(videos.retrieve(ordered.id), (error) => error.status === 404);
  },

  async plain() {
    const answer = await create({ messages: user("one two") });
    const [choice] = answer.choices;
    assert.equal(answer.object, "chat.completion");
    assert.equal(choice.message.content, "You said: one two");
    assert.equal(choice.finish_reason, "stop");
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage;
    assert.ok(prompt_tokens > 0 && completion_tokens > 0);
    assert.equal(total_tokens, prompt_tokens + completion_tokens);
  },

  async choices() {
    const answer = await create({ messages: user("a"), n: 2 });
    assert.deepEqual(answer.choices.map((choice) => choice.index), [0, 1]);
  },

  async length() {
    const answer = await create({ messages: user("a b c"), max_completion_tokens: 2 });
    assert.equal(answer.choices[0].finish_reason, "length");
  },

  async stream() {
    const chunks = await all(await create({ messages: user("one two"), stream: true }));
    assert.ok(chunks.every((chunk) => chunk.object === "chat.completion.chunk"));
    assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
    const deltas = chunks.flatMap((chunk) => chunk.choices);
    assert.equal(deltas[0].delta.role, "assistant");
    assert.equal(deltas.map((choice) => choice.delta.content ?? "").join(""), "You said: one two");
    assert.deepEqual(deltas.map((choice) => choice.finish_reason).filter(Boolean), ["stop"]);
  },

  async stream_usage() {
    const request = { messages: user("one two") };
    const options = { stream: true, stream_options: { include_usage: true } };
    const chunks = await all(await create({ ...request, ...options }));
    const usages = chunks.map((chunk) => chunk.usage).filter(Boolean);
    assert.equal(usages.length, 1);
    assert.equal(usages[0].total_tokens, (await create(request)).usage.total_tokens);
  },

  async tools_parallel() {
    const request = { messages: user("get_weather and get_time of Paris"), tools: TOOLS };
    const [choice] = (await create(request)).choices;
    assert.equal(choice.finish_reason, "tool_calls");
    assert.deepEqual(names(choice.message), ["get_weather", "get_time"]);
    choice.message.tool_calls.forEach((call) => assert.deepEqual(members(call), ["city"]));
  },

  async tools_forced() {
    const tool_choice = { type: "function", function: { name: "get_time" } };
    const answer = await create({ messages: user("hello"), tools: TOOLS, tool_choice });
    assert.deepEqual(names(answer.choices[0].message), ["get_time"]);
  },

  async tools_answered() {
    const messages = user("get_weather of Paris");
    const { message } = (await create({ messages, tools: TOOLS })).choices[0];
    messages.push(message);
    messages.push({ role: "tool", tool_call_id: message.tool_calls[0].id, content: "sunny" });
    const second = await create({ messages, tools: TOOLS });
    assert.equal(second.choices[0].message.content, "The tool said: sunny");
  },

  async tools_streamed() {
    const request = { model: MODEL, messages: user("get_weather and get_time of Paris"), tools: TOOLS };
    const message = await client().chat.completions.stream(request).finalMessage();
    assert.deepEqual(names(message), ["get_weather", "get_time"]);
    message.tool_calls.forEach((call) => assert.deepEqual(members(call), ["city"]));
  },

  async json_schema() {
    const schema = {
      type: "object",
      properties: { city: { type: "string" }, degrees: { type: "integer" } },
      required: ["city", "degrees"],
      additionalProperties: false,
    };
    const json_schema = { name: "forecast", strict: true, schema };
    const response_format = { type: "json_schema", json_schema };
    const answer = await client().chat.completions.parse({
      model: MODEL,
      messages: user("a forecast"),
      response_format,
    });
    const value = JSON.parse(answer.choices[0].message.content);
    assert.deepEqual(Object.keys(value).sort(), ["city", "degrees"]);
    assert.ok(Number.isInteger(value.degrees));
  },

  async images() {
    const is_png = (data) => Buffer.from(data, "base64").subarray(1, 4).toString() === "PNG";
    const request = { model: IMAGE_MODEL, prompt: "a sun" };
    const answer = await client().images.generate(request);
    assert.ok(answer.created > 0 && is_png(answer.data[0].b64_json));
    assert.ok(answer.usage.output_tokens_details.image_tokens > 0);
    const events = await all(await client().images.generate({ ...request, stream: true }));
    assert.deepEqual(events.map((event) => event.type), ["image_generation.completed"]);
    assert.ok(is_png(events[0].b64_json) && events[0].usage.total_tokens > 0);
    await assert.rejects(client().images.generate({ ...request, n: 11 }), { status: 400, param: "n" });
    const png = Buffer.from(answer.data[0].b64_json, "base64");
    const image = await toFile(png, "a.png", { type: "image/png" });
    const edited = await client().images.edit({ model: IMAGE_MODEL, prompt: "a hat", image });
    assert.ok(is_png(edited.data[0].b64_json) && edited.output_format === "png");
  },

  async json_object() {
    const response_format = { type: "json_object" };
    const answer = await create({ messages: user("some json"), response_format });
    assert.deepEqual(JSON.parse(answer.choices[0].message.content), { you_said: "some json" });
  },

  async request_id() {
    const { data, response } = await create({ messages: user("a") }).withResponse();
    const sent = response.headers.get("x-request-id");
    assert.ok(sent);
    assert.equal(data._request_id, sent);
    assert.notEqual((await create({ messages: user("a") }))._request_id, sent);
    await assert.rejects(create({ model: "no-such-model", messages: user("a") }), (error) => {
      assert.ok(error.requestID);
      return true;
    });
  },

  async retries() {
    const [retrying, calls] = counting();
    const answer = await create({ model: FLAKY_MODEL, messages: user("a") }, retrying);
    assert.ok(answer.choices[0].message.content);
    assert.equal(calls.made, 2);
  },

  async refusals() {
    const [strict, calls] = counting();
    const refused = (change, kind, facts) =>
      assert.rejects(create({ messages: user("a"), ...change }, strict), (error) => {
        assert.ok(error instanceof kind, String(error));
        Object.entries(facts).forEach(([name, value]) => assert.equal(error[name], value));
        return true;
      });
    await refused({ temperature: "hot" }, OpenAI.BadRequestError, { status: 400, param: "temperature" });
    await refused({ n: 0 }, OpenAI.BadRequestError, { param: "n" });
    await refused({ model: "no-such-model" }, OpenAI.NotFoundError, { code: "model_not_found" });
    assert.equal(calls.made, 3);
  },

  async wrong_key() {
    const stranger = client({ apiKey: "wg-nobody" });
    await assert.rejects(create({ messages: user("a") }, stranger), OpenAI.AuthenticationError);
  },

  async embeddings() {
    // The client asks for base64 unless told otherwise, and decodes it.
    for (const options of [{}, { encoding_format: "float" }]) {
      const request = { model: EMBEDDING_MODEL, input: ["one", "two"], ...options };
      const answer = await client().embeddings.create(request);
      assert.deepEqual(answer.data.map((item) => [...item.embedding]), [[0.5, 0], [0.5, 1]]);
      assert.deepEqual(answer.usage, { prompt_tokens: 6, total_tokens: 6 });
    }
    const empty = client().embeddings.create({ model: EMBEDDING_MODEL, input: [] });
    await assert.rejects(empty, OpenAI.BadRequestError);
  },

  async embeddings_in_parts() {
    const input = ["one", "two", "one", "three", "two"];
    const { data } = await client().embeddings.create({ model: SPLIT_MODEL, input, dimensions: 16 });
    const vectors = data.map((item) => JSON.stringify([...item.embedding]));
    assert.deepEqual(data.map((item) => item.index), [0, 1, 2, 3, 4]);
    assert.deepEqual([vectors[0], vectors[1]], [vectors[2], vectors[4]]);
    assert.equal(data[0].embedding.length, 16);
  },

  async moderations() {
    const input = ["a kind word", "they talked of violence"];
    const { results } = await client().moderations.create({ model: "sandbox-moderation", input });
    assert.deepEqual(results.map((result) => result.flagged), [false, true]);
    const empty = client().moderations.create({ model: "sandbox-moderation", input: [] });
    await assert.rejects(empty, OpenAI.BadRequestError);
  },

  async models() {
    const listed = [];
    for await (const model of client().models.list()) listed.push(model.id);
    assert.ok(listed.includes(MODEL));
    assert.equal((await client().models.retrieve(MODEL)).id, MODEL);
    await assert.rejects(client().models.retrieve("nowhere/nothing"), OpenAI.NotFoundError);
  },

  async cut_stream() {
    const stream = await create({ model: CUT_MODEL, messages: user("one two"), stream: true });
    await assert.rejects(all(stream), OpenAI.APIError);
  },
};

await main(checks);
