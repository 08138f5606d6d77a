// Text, tools, images, JSON schema and reasoning through the real `openai` client and the Vercel AI SDK.
//
// Environment: BASE_URL (with /v1), API_KEY, MODELS (their ids, joined by commas; each is served on another wire by a
// provider that answers as tests/support/scripted says). One line per check and model on stdout; exit 1 when one failed.
import assert from 'node:assert/strict';

import { Output, aiChecks, forecast, generateText, load, streamText } from './ai_checks.mjs';
import { main } from './checks.mjs';

const { default: OpenAI } = await load('openai');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible');

const { BASE_URL, API_KEY, MODELS } = process.env;
const client = new OpenAI({ baseURL: BASE_URL, apiKey: API_KEY, maxRetries: 0 });
const provider = createOpenAICompatible({
  name: 'weirgate', baseURL: BASE_URL, apiKey: API_KEY, supportsStructuredOutputs: true, includeUsage: true,
});

const checks = {
  ...aiChecks(provider),

  async openai_tools(model) {
    const messages = [{ role: 'user', content: 'The weather?' }];
    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const tools = [{ type: 'function', function: { name: 'get_weather', parameters } }];
    const stream = client.chat.completions.stream({ model, messages, tools });
    const first = (await stream.finalChatCompletion()).choices[0];
    assert.equal(first.finish_reason, 'tool_calls');
    const [call] = first.message.tool_calls;
    assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Paris' });
    messages.push(first.message, { role: 'tool', tool_call_id: call.id, content: 'sunny' });
    const second = await client.chat.completions.create({ model, messages, tools });
    assert.equal(second.choices[0].message.content, 'The tool said: sunny');
  },

  async ai_schema(model) {
    const output = Output.object({ schema: forecast });
    const answer = await generateText({ model: provider(model), prompt: 'a forecast', output });
    assert.deepEqual(answer.output, { city: 'Paris', degrees: 20 });
  },

  async ai_reasoning(model) {
    const options = { model: provider(model), prompt: 'one', providerOptions: { weirgate: { reasoningEffort: 'high' } } };
    const whole = await generateText(options);
    assert.deepEqual([whole.reasoningText, whole.text], ['hm', 'You said: one']);
    const stream = streamText(options);
    assert.deepEqual([await stream.reasoningText, await stream.text], ['hm', 'You said: one']);
  },
};

await main(checks, MODELS.split(',').map((model) => [model]));
