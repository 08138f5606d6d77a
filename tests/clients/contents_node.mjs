// Text, tools, JSON schema, thoughts, counts and errors through the real `@google/genai`, over every wire.
//
// Environment: BASE_URL (with /v1), API_KEY, MODELS (their ids, joined by commas; each is served on another wire by a
// provider that answers as tests/support/scripted says). One line per check and model on stdout; exit 1 when one failed.
import assert from 'node:assert/strict';

import { load } from './ai_checks.mjs';
import { main } from './checks.mjs';

const { GoogleGenAI, Type } = await load('@google/genai');

const { BASE_URL, API_KEY, MODELS } = process.env;
const client = new GoogleGenAI({ apiKey: API_KEY, httpOptions: { baseUrl: BASE_URL.replace(/\/v1$/, ''), timeout: 30_000 } });
const parameters = { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ['city'] };
const tools = [{ functionDeclarations: [{ name: 'get_weather', description: 'The weather.', parameters }] }];
const user = (text) => ({ role: 'user', parts: [{ text }] });

async function answered(model, said) {
  const call = said.find((part) => part.functionCall).functionCall;
  assert.deepEqual([call.name, call.args], ['get_weather', { city: 'Paris' }]);
  const functionResponse = { id: call.id, name: call.name, response: { output: 'sunny' } };
  const contents = [user('The weather?'), { role: 'model', parts: said }, { role: 'user', parts: [{ functionResponse }] }];
  const second = await client.models.generateContent({ model, contents, config: { tools } });
  assert.equal(second.text, 'The tool said: sunny');
}

const checks = {
  async text(model) {
    const whole = await client.models.generateContent({ model, contents: 'one two' });
    assert.deepEqual([whole.text, whole.modelVersion], ['You said: one two', model]);
    let said = '';
    let last;
    for await (const chunk of await client.models.generateContentStream({ model, contents: 'one two' })) {
      said += chunk.text ?? '';
      last = chunk;
    }
    assert.deepEqual([said, last.candidates[0].finishReason], ['You said: one two', 'STOP']);
    assert.equal(last.usageMetadata.candidatesTokenCount, 5);
  },

  async tools(model) {
    const asked = { model, contents: 'The weather?', config: { tools } };
    const whole = await client.models.generateContent(asked);
    await answered(model, whole.candidates[0].content.parts);
    const parts = [];
    for await (const chunk of await client.models.generateContentStream(asked)) {
      parts.push(...(chunk.candidates[0].content.parts ?? []).filter((part) => part.text !== ''));
    }
    await answered(model, parts);
  },

  async json(model) {
    const responseSchema = { type: Type.OBJECT, properties: { city: { type: Type.STRING }, degrees: { type: Type.INTEGER } } };
    const config = { responseMimeType: 'application/json', responseSchema };
    const answer = await client.models.generateContent({ model, contents: 'a forecast', config });
    assert.deepEqual(JSON.parse(answer.text), { city: 'Paris', degrees: 20 });
  },

  async thoughts(model) {
    const config = { thinkingConfig: { includeThoughts: true, thinkingLevel: 'LOW' } };
    const first = await client.models.generateContent({ model, contents: 'one', config });
    const said = first.candidates[0].content;
    assert.ok(said.parts.some((part) => part.thought && part.text === 'hm'));
    const second = await client.models.generateContent({ model, contents: [user('one'), said, user('two')], config });
    assert.equal(second.text, 'You said: two');
  },

  async counted(model) {
    assert.ok((await client.models.countTokens({ model, contents: 'one two' })).totalTokens > 0);
  },

  async refused(model) {
    const asked = client.models.generateContent({ model: 'nobody', contents: 'one' });
    await assert.rejects(asked, (error) => error.status === 404);
    const bad = client.models.generateContent({ model, contents: [] });
    await assert.rejects(bad);
  },
};

await main(checks, MODELS.split(',').map((model) => [model]));
