// Breaks when a client of the Anthropic messages API cannot talk to the server. UX17
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import * as h from './harness.mjs';

const file = h.wholeFile();

describe('Anthropic messages (UX17)', () => {
    let server;
    let client;
    const messages = [{ role: 'user', content: 'What is the capital of France?' }];
    before(async () => {
        server = await h.startServer(file, { engine: ['-c', '2048', '-np', '1'] });
        client = new h.Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0, timeout: h.patience });
    });

    test('a message', async () => {
        const answer = await client.messages.create({ model: 'builtin', max_tokens: 24, temperature: 0, messages });
        assert.equal(answer.type, 'message');
        assert.match(answer.content[0].text, /Paris/);
        assert.equal(answer.stop_reason, 'end_turn');
        assert.ok(answer.usage.input_tokens > 0 && answer.usage.output_tokens > 0);
    });

    test('a system text is heard', async () => {
        const answer = await client.messages.create({
            model: 'builtin', max_tokens: 24, temperature: 0, system: 'You are Nova, a cheerful robot.',
            messages: [{ role: 'user', content: 'What is your name?' }],
        });
        assert.match(answer.content[0].text, /Nova/);
    });

    test('a stream has the events in their order', async () => {
        const kinds = [];
        let text = '';
        const stream = await client.messages.create({ model: 'builtin', max_tokens: 24, temperature: 0, stream: true, messages });
        for await (const event of stream) {
            if (event.type !== 'ping' && event.type !== kinds.at(-1)) kinds.push(event.type);
            if (event.type === 'content_block_delta') text += event.delta.text;
        }
        assert.match(text, /Paris/);
        assert.deepEqual(kinds, ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop']);
    });

    test('the token limit is named', async () => {
        const answer = await client.messages.create({ model: 'builtin', max_tokens: 2, temperature: 0, messages });
        assert.equal(answer.stop_reason, 'max_tokens');
        assert.equal(answer.usage.output_tokens, 2);
    });

    test('tokens are counted as the message counts them', async () => {
        const { input_tokens } = await client.messages.countTokens({ model: 'builtin', messages });
        const answer = await client.messages.create({ model: 'builtin', max_tokens: 1, messages });
        assert.equal(input_tokens, answer.usage.input_tokens + (answer.usage.cache_read_input_tokens ?? 0));
    });

    test('a forced tool call parses', async (context) => {
        const tools = await h.startServer(context, { engine: h.toolEngine });
        const client = new h.Anthropic({ baseURL: tools.url, apiKey: 'none', maxRetries: 0, timeout: h.patience });
        const answer = await client.messages.create({
            model: 'builtin', max_tokens: 96, temperature: 0, messages, tool_choice: { type: 'any' },
            tools: [{ name: 'look_up', input_schema: { type: 'object', properties: { word: { type: 'string', maxLength: 12 } }, required: ['word'] } }],
        });
        const call = answer.content.find((block) => block.type === 'tool_use');
        assert.equal(call.name, 'look_up');
        assert.equal(typeof call.input.word, 'string');
        assert.equal(answer.stop_reason, 'tool_use');
    });
});
