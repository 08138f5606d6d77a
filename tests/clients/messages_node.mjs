// Text, tools, images, JSON schema and thinking through the real `@anthropic-ai/sdk` and the Vercel AI SDK with its provider for
// Anthropic, over every wire.
//
// Environment: BASE_URL (with /v1), API_KEY, MODELS (their ids, joined by commas; each is served on another wire by a
// provider that answers as tests/support/scripted says). One line per check and model on stdout; exit 1 when one failed.
import assert from 'node:assert/strict';

import { Output, aiChecks, forecast, generateText, load, streamText, user } from './ai_checks.mjs';
import { main } from './checks.mjs';

const { default: Anthropic } = await load('@anthropic-ai/sdk');
const { createAnthropic } = await load('@ai-sdk/anthropic');

const { BASE_URL, API_KEY, MODELS } = process.env;
const client = new Anthropic({ baseURL: BASE_URL.replace(/\/v1$/, ''), apiKey: API_KEY, maxRetries: 0, timeout: 30_000 });
const provider = createAnthropic({ baseURL: BASE_URL, apiKey: API_KEY });

const checks = {
  ...aiChecks(provider),

  async sdk_text(model) {
    const whole = await client.messages.create({ model, max_tokens: 100, messages: user('one two') });
    assert.deepEqual([whole.content[0].text, whole.stop_reason, whole.model], ['You said: one two', 'end_turn', model]);
    const stream = client.messages.stream({ model, max_tokens: 100, messages: user('one two') });
    assert.equal(await stream.finalText(), 'You said: one two');
    assert.equal((await stream.finalMessage()).usage.output_tokens, 5);
  },

  async sdk_tools(model) {
    const input_schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const tools = [{ name: 'get_weather', input_schema }];
    const messages = user('The weather?');
    const first = await client.messages.stream({ model, max_tokens: 100, messages, tools }).finalMessage();
    assert.equal(first.stop_reason, 'tool_use');
    const call = first.content.find((block) => block.type === 'tool_use');
    assert.deepEqual(call.input, { city: 'Paris' });
    messages.push({ role: 'assistant', content: first.content });
    messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'sunny' }] });
    const second = await client.messages.create({ model, max_tokens: 100, messages, tools });
    assert.equal(second.content.at(-1).text, 'The tool said: sunny');
  },

  async sdk_refused(model) {
    const asked = { model, max_tokens: 100, messages: user([{ type: 'text' }]) };
    await assert.rejects(client.messages.create(asked), (error) => {
      assert.equal(error.status, 400);
      assert.equal(error.error.error.type, 'invalid_request_error');
      assert.match(error.message, /messages\.0\.content\.0\.text/);
      return true;
    });
  },

  async ai_schema(model) {
    const output = Output.object({ schema: forecast });
    const providerOptions = { anthropic: { structuredOutputMode: 'outputFormat' } };
    const answer = await generateText({ model: provider(model), prompt: 'a forecast', output, providerOptions });
    assert.deepEqual(answer.output, { city: 'Paris', degrees: 20 });
  },

  async ai_thinking(model) {
    const providerOptions = { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } };
    const messages = user('one');
    const first = await generateText({ model: provider(model), messages, providerOptions });
    assert.deepEqual([first.reasoningText, first.text], ['hm', 'You said: one']);
    // What was thought goes back with its signature.
    messages.push(...first.response.messages, ...user('two'));
    const second = streamText({ model: provider(model), messages, providerOptions });
    assert.deepEqual([await second.reasoningText, await second.text], ['hm', 'You said: two']);
  },
};

await main(checks, MODELS.split(',').map((model) => [model]));
