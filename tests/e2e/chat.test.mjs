// Breaks when a plain chat over HTTP gives a wrong answer, a broken stream or wrong counts on the device named by
// ONEBIT_TEST_DEVICE (CPU, or Vulkan0 which is software Vulkan: 2 to 12 tokens a second, so everything is short).
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import * as h from './harness.mjs';

const device = process.env.ONEBIT_TEST_DEVICE ?? 'CPU';
// prompts are read there, on the same memory
const prefill = process.env.ONEBIT_TEST_PREFILL;
const skip = (device.startsWith('Vulkan') || prefill?.startsWith('Vulkan')) && h.noSoftwareVulkan();
const flags = prefill ? ['--prefill-device', prefill, '--prefill-min-tokens', '8'] : [];
const file = h.wholeFile();
const question = 'What is the capital of France?';

describe(`chat on ${device}${prefill ? `, prompts on ${prefill}` : ''}`, { skip }, () => {
    let server;
    let client;
    before(async () => {
        server = await h.startServer(file, { device, flags, engine: ['-c', '1024', '-np', '1', '-ub', '64'] });
        client = h.openai(server);
    });

    test('the capital of France is Paris', async () => {
        const answer = await client.chat.completions.create({
            model: 'builtin', temperature: 0, max_tokens: 16, messages: [{ role: 'user', content: question }],
        });
        assert.match(answer.choices[0].message.content, /Paris/);
        assert.equal(answer.choices[0].finish_reason, 'stop');
        assert.equal(answer.object, 'chat.completion');
        if (prefill) {
            const { engines } = await (await fetch(`${server.url}/onebit/ps`)).json();
            const devices = engines[0].memory.map((place) => place.device);
            assert.ok(devices.includes('Tandem0') && devices.includes(prefill), `memory on ${devices}`);
        }
        assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
    });

    test('a stream brings the same text in pieces, then usage and the end mark', async () => {
        const stream = await client.chat.completions.create({
            model: 'builtin', temperature: 0, max_tokens: 16, stream: true, stream_options: { include_usage: true },
            messages: [{ role: 'user', content: question }],
        });
        let text = '';
        let pieces = 0;
        let finish;
        let usage;
        for await (const event of stream) {
            const choice = event.choices[0];
            if (choice?.delta.content) {
                text += choice.delta.content;
                pieces++;
            }
            finish = choice?.finish_reason ?? finish;
            usage = event.usage ?? usage;
        }
        assert.match(text, /Paris/);
        assert.ok(pieces >= 3, `${pieces} pieces of '${text}'`);
        assert.equal(finish, 'stop');
        assert.ok(usage.completion_tokens >= pieces);
        const raw = await h.chat(server, question, { stream: true, max_tokens: 4 });
        assert.match(raw.headers['content-type'], /^text\/event-stream/);
        assert.match(raw.text, /data: \[DONE\]\n\n$/);
    });

    test('it remembers the first turn in the second', async () => {
        const messages = [
            { role: 'user', content: 'My name is Rosa.' },
            { role: 'assistant', content: 'Nice to meet you, Rosa.' },
            { role: 'user', content: 'What is my name?' },
        ];
        const answer = await client.chat.completions.create({ model: 'builtin', temperature: 0, max_tokens: 12, messages });
        assert.match(answer.choices[0].message.content, /Rosa/);
    });

    test('the completion route continues a text and stops at the token limit', async () => {
        const answer = await client.completions.create({ model: 'builtin', prompt: 'Once upon a time', temperature: 0, max_tokens: 6 });
        assert.equal(answer.usage.completion_tokens, 6);
        assert.equal(answer.choices[0].finish_reason, 'length');
        assert.ok(answer.choices[0].text.length > 6);
    });

    test('props and the model list say what is served', async () => {
        const props = (await h.get(server, '/props')).json();
        assert.equal(props.default_generation_settings.n_ctx, 1024);
        const list = await client.models.list();
        assert.ok(list.data.length >= 1);
    });
});
