// Text, tools, images, JSON schema and reasoning through the Responses API of the real `openai` client and of the Vercel AI SDK with
// its provider for OpenAI, over every wire.
//
// Environment: BASE_URL (with /v1), API_KEY, MODELS (their ids, joined by commas; each is served on another wire by a
// provider that answers as tests/support/scripted says). One line per check and model on stdout; exit 1 when one failed.
import assert from 'node:assert/strict';

import { Output, aiChecks, forecast, generateText, load, streamText, user } from './ai_checks.mjs';
import { main } from './checks.mjs';

const { default: OpenAI } = await load('openai');
const { zodTextFormat } = await load('openai/helpers/zod');
const { createOpenAI } = await load('@ai-sdk/openai');

const { BASE_URL, API_KEY, MODELS } = process.env;
const client = new OpenAI({ baseURL: BASE_URL, apiKey: API_KEY, maxRetries: 0, timeout: 30_000 });
const provider = createOpenAI({ baseURL: BASE_URL, apiKey: API_KEY }).responses;

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const tools = [{ type: 'function', name: 'get_weather', parameters, strict: true }];
// By itself the SDK names items of stored responses in place of sending them.
const stateless = { providerOptions: { openai: { store: false } } };
const reasons = { openai: { store: false, include: ['reasoning.encrypted_content'], reasoningEffort: 'low', reasoningSummary: 'auto', forceReasoning: true } };

const checks = {
  ...aiChecks(provider, stateless),

  async sdk_text(model) {
    const whole = await client.responses.create({ model, input: 'one two' });
    assert.deepEqual([whole.output_text, whole.status, whole.model], ['You said: one two', 'completed', model]);
    assert.equal(whole.usage.total_tokens, 14);
  },

  async sdk_events(model) {
    const stream = client.responses.stream({ model, input: 'one two' });
    let said = '';
    stream.on('response.output_text.delta', (event) => (said += event.delta));
    const final = await stream.finalResponse();
    assert.deepEqual([said, final.output_text, final.usage.output_tokens], ['You said: one two', 'You said: one two', 5]);
    const numbers = [];
    for await (const event of await client.responses.create({ model, input: 'one', stream: true })) numbers.push(event.sequence_number);
    assert.deepEqual(numbers, [...numbers.keys()]);
  },

  async sdk_tools(model) {
    const input = [{ role: 'user', content: 'The weather?' }];
    const first = await client.responses.stream({ model, input, tools }).finalResponse();
    const call = first.output.find((item) => item.type === 'function_call');
    assert.deepEqual(JSON.parse(call.arguments), { city: 'Paris' });
    input.push(...first.output, { type: 'function_call_output', call_id: call.call_id, output: 'sunny' });
    const second = await client.responses.create({ model, input, tools });
    assert.equal(second.output_text, 'The tool said: sunny');
  },

  async sdk_parsed(model) {
    const text = { format: zodTextFormat(forecast, 'forecast') };
    const answer = await client.responses.parse({ model, input: 'a forecast', text });
    assert.deepEqual(answer.output_parsed, { city: 'Paris', degrees: 20 });
  },

  async sdk_compact(model) {
    const input = [{ role: 'user', content: 'one two' }];
    const compacted = await client.responses.compact({ model, input });
    assert.deepEqual([compacted.object, compacted.output.map((item) => item.type)], ['response.compaction', ['compaction']]);
    const next = await client.responses.create({ model, input: [...compacted.output, { role: 'user', content: 'three' }] });
    assert.match(next.output_text, /three/);
  },

  async ai_schema(model) {
    const output = Output.object({ schema: forecast });
    const answer = await generateText({ model: provider(model), prompt: 'a forecast', output, ...stateless });
    assert.deepEqual(answer.output, { city: 'Paris', degrees: 20 });
  },

  async ai_reasoning(model) {
    const messages = user('one');
    const first = await generateText({ model: provider(model), messages, providerOptions: reasons });
    assert.deepEqual([first.reasoningText, first.text], ['hm', 'You said: one']);
    messages.push(...first.response.messages, ...user('two'));
    const second = streamText({ model: provider(model), messages, providerOptions: reasons });
    assert.deepEqual([await second.reasoningText, await second.text], ['hm', 'You said: two']);
  },
};

await main(checks, MODELS.split(',').map((model) => [model]));
