// Breaks when clients that leave, come many at once or wait behind others get in each other's way or keep a slot busy.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import * as h from './harness.mjs';

const file = h.wholeFile();

// Starts a request and resolves with {open, head} when the first bytes of its stream are here.
function startStream(server, target, body) {
    const open = h.openRequest(server, 'POST', target, { stream: true, ...body });
    return new Promise((resolve, reject) => {
        open.on('error', reject);
        open.on('response', (response) => {
            const stream = { open, response, text: '' };
            response.on('error', () => {});
            response.on('data', (data) => {
                stream.text += data;
                resolve(stream);
            });
            response.on('end', () => {
                stream.ended = true;
                resolve(stream);
            });
        });
    });
}
const slots = async (server) => (await h.get(server, '/slots')).json();
const idle = async (server) => (await slots(server)).every((slot) => !slot.is_processing);

describe('clients that leave', () => {
    let server;
    before(async () => {
        server = await h.startServer(file, { engine: h.slowEngine });
    });

    // API10
    test('API10: leaving a stream frees its slot', async () => {
        const stream = await startStream(server, '/completion', { prompt: 'Once upon a time', n_predict: -1, ignore_eos: true });
        assert.ok(!(await idle(server)));
        stream.open.destroy();
        await h.until('the slot is free', () => idle(server), 60_000);
    });

    test('API10: leaving an answer that is no stream frees its slot', async () => {
        const open = h.openRequest(server, 'POST', '/completion', { prompt: 'Once upon a time', n_predict: -1, ignore_eos: true });
        open.on('error', () => {});
        await h.until('the request runs', async () => !(await idle(server)));
        open.destroy();
        await h.until('the slot is free', () => idle(server), 60_000);
    });

    // API11
    test('API11: leaving in prefill stops it, long before the prompt is read', async () => {
        const prompt = h.longText(14000);
        const total = (await h.post(server, '/tokenize', { content: prompt })).json().tokens.length;
        const open = h.openRequest(server, 'POST', '/completion', { prompt, n_predict: 1, cache_prompt: false });
        open.on('error', () => {});
        const busy = await h.until('prefill has begun', async () => (await slots(server)).find((slot) => slot.is_processing && slot.n_prompt_tokens_processed >= 64), h.patience, 5);
        open.destroy();
        await h.until('the slot is free', () => idle(server), 60_000);
        const after = (await slots(server)).find((slot) => slot.id === busy.id);
        assert.ok(after.n_prompt_tokens_processed < total, `${after.n_prompt_tokens_processed} of ${total} tokens were read`);
        assert.match((await h.chat(server, 'What is the capital of France?')).text, /Paris/);
    });

    // API11: each result of another client once put off that anybody looked after this one
    test('API11: leaving in prefill stops it on a server that others keep busy', async () => {
        const other = await startStream(server, '/completion', { prompt: 'Once upon a time', n_predict: -1, ignore_eos: true });
        const open = h.openRequest(server, 'POST', '/completion', { prompt: h.longText(14000), n_predict: 1, cache_prompt: false });
        open.on('error', () => {});
        const reading = async () => (await slots(server)).filter((slot) => slot.is_processing && slot.n_prompt_tokens_processed >= 64);
        await h.until('prefill has begun', async () => (await reading()).length > 0, h.patience, 5);
        open.destroy();
        await h.until('its slot is free', async () => (await slots(server)).filter((slot) => slot.is_processing).length === 1, 60_000);
        assert.ok(!other.ended);
        const before = other.text.length;
        await h.until('the other stream goes on', () => other.text.length > before);
        assert.doesNotMatch(other.text, /"error"/);
        other.open.destroy();
        await h.until('both slots are free', () => idle(server), 60_000);
    });

    // API13
    test('API13: a queued request that leaves does not touch the running ones', async () => {
        const running = await Promise.all(
            ['Once upon a time', 'The old man'].map((prompt) => startStream(server, '/completion', { prompt, n_predict: 200, ignore_eos: true, temperature: 0 })),
        );
        const queued = h.openRequest(server, 'POST', '/completion', { prompt: 'queued', n_predict: 4 });
        queued.on('error', () => {});
        await new Promise((resolve) => queued.on('finish', resolve));
        await h.sleep(100);
        queued.destroy();
        await h.until('both streams end', () => running.every((stream) => stream.ended));
        for (const stream of running) {
            assert.doesNotMatch(stream.text, /"error"/);
            const last = JSON.parse(stream.text.trim().split('\n\n').at(-1).replace(/^data: /, ''));
            assert.equal(last.tokens_predicted, 200);
        }
    });

    // API14, API15: the head and signs of life come while the prompt is read, whatever its length
    test('API14, API15: the head of a stream does not wait for prefill', async () => {
        const open = h.openRequest(server, 'POST', '/v1/chat/completions', {
            stream: true, max_tokens: 1, cache_prompt: false, messages: [{ role: 'user', content: h.longText(14000) }],
        });
        open.on('error', () => {});
        const head = new Promise((resolve) => open.on('response', resolve));
        const response = await head;
        assert.equal(response.statusCode, 200);
        assert.match(response.headers['content-type'], /^text\/event-stream/);
        let text = '';
        response.on('error', () => {});
        response.on('data', (data) => (text += data));
        // on a busy machine the head may come before the prompt is even begun, but never after it
        await h.until('the prompt is read after the head', async () => (await slots(server)).some((slot) => slot.is_processing));
        assert.doesNotMatch(text, /"delta"/);
        open.destroy();
        await h.until('the slot is free', () => idle(server), 60_000);
    });
});

describe('many clients', () => {
    let server;
    before(async () => {
        server = await h.startServer(file, { engine: ['-c', '4096', '-np', '4'] });
    });

    test('64 at once: all are answered, each its own question', async () => {
        const capitals = { France: 'Paris', Spain: 'Madrid', Italy: 'Rome', Germany: 'Berlin', Japan: 'Tokyo', Egypt: 'Cairo', Peru: 'Lima', Norway: 'Oslo' };
        const countries = Object.keys(capitals);
        const answers = await Promise.all(
            Array.from({ length: 64 }, (_, i) => h.chat(server, `What is the capital of ${countries[i % 8]}?`, { stream: i % 2 === 1, max_tokens: 16 })),
        );
        answers.forEach((answer, i) => {
            assert.equal(answer.status, 200, answer.text);
            const text = i % 2 === 0 ? answer.json().choices[0].message.content
                : answer.text.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)).choices[0]?.delta.content ?? '').join('');
            assert.match(text, new RegExp(capitals[countries[i % 8]]), `${countries[i % 8]}: ${text}`);
        });
        assert.ok(await idle(server));
    });

    // API22
    test('API22: one long request does not end the others', async () => {
        const long = h.post(server, '/completion', { prompt: 'Once upon a time', n_predict: 5000, ignore_eos: true, temperature: 0 });
        const short = await Promise.all(Array.from({ length: 6 }, () => h.chat(server, 'What is the capital of France?')));
        for (const answer of short) assert.match(answer.text, /Paris/);
        const answer = await long;
        assert.ok(answer.status === 200 || answer.status === 400, answer.text);
    });

    // API22: no slot takes cells of another, since 1bit's own flags give each a cache of its own
    test('API22: requests that do not fit their slot end no other', async (context) => {
        const small = await h.startServer(context, { flags: ['--ctx-size', '512', '--parallel', '4'] });
        const { tokens } = (await h.post(small, '/tokenize', { content: h.longText(1200) })).json();
        const lengths = [300, 600, 400, 600, 300, 520];
        const answers = await Promise.all(
            lengths.map((length, i) => h.post(small, '/completion', { prompt: tokens.slice(i * 20, i * 20 + length), n_predict: 100, temperature: 0, ignore_eos: true })),
        );
        answers.forEach((answer, i) => {
            assert.equal(answer.status, lengths[i] > 512 ? 400 : 200, `${lengths[i]} tokens: ${answer.text}`);
            if (answer.status === 200) assert.equal(answer.json().tokens_predicted, 100);
        });
        assert.match((await h.chat(small, 'What is the capital of France?')).text, /Paris/);
    });

    test('200 connections that say nothing do not keep others out', async () => {
        const net = await import('node:net');
        const sockets = await Promise.all(
            Array.from({ length: 200 }, () => new Promise((resolve, reject) => {
                const socket = net.connect(server.port, '127.0.0.1', () => resolve(socket));
                socket.on('error', reject);
            })),
        );
        try {
            assert.equal((await h.get(server, '/health')).status, 200);
            assert.match((await h.chat(server, 'What is the capital of France?')).text, /Paris/);
        } finally {
            sockets.forEach((socket) => socket.destroy());
        }
    });
});
