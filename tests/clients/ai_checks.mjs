// What the Vercel AI SDK does in the same way with every provider of its own, and what those checks are made of.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The packages are beside the working directory and not beside this file.
const here = createRequire(`${process.cwd()}/package.json`);
export const load = async (name) => import(pathToFileURL(here.resolve(name)).href);
export const { Output, generateText, streamText } = await load('ai');
const { isStepCount, tool } = await load('ai');
const { z } = await load('zod');

const IMAGE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==';
export const forecast = z.object({ city: z.string(), degrees: z.number() });
export const user = (content) => [{ role: 'user', content }];
const weather = tool({
  description: 'The weather of a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
});

// Returns the checks for a provider of the SDK, whose calls have these options too.
export const aiChecks = (provider, more = {}) => ({
  async ai_text(model) {
    const whole = await generateText({ model: provider(model), prompt: 'one two', ...more });
    assert.equal(whole.text, 'You said: one two');
    assert.equal(whole.usage.totalTokens, 14);
    const stream = streamText({ model: provider(model), prompt: 'one two', ...more });
    let text = '';
    for await (const piece of stream.textStream) text += piece;
    assert.equal(text, 'You said: one two');
    assert.equal((await stream.usage).totalTokens, 14);
    assert.equal(await stream.finishReason, 'stop');
  },

  async ai_tools(model) {
    const options = { model: provider(model), prompt: 'The weather?', tools: { get_weather: weather }, stopWhen: isStepCount(2), ...more };
    const whole = await generateText(options);
    assert.equal(whole.text, 'The tool said: sunny in Paris');
    const stream = streamText(options);
    assert.equal(await stream.text, 'The tool said: sunny in Paris');
  },

  async ai_image(model) {
    const content = [{ type: 'text', text: 'Look' }, { type: 'image', image: IMAGE, mediaType: 'image/png' }];
    const answer = await generateText({ model: provider(model), messages: user(content), ...more });
    assert.equal(answer.text, 'I see an image');
  },
});
