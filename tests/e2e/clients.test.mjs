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

// engines write streamed events to the client's socket themselves
describe('streams straight from the engine', () => {
    let server;
    before(async () => {
        server = await h.startServer(file, { engine: ['-c', '4096', '-np', '4'] });
    });
    const body = { prompt: 'Once upon a time', n_predict: 60, temperature: 0, ignore_eos: true, stream: true, cache_prompt: false };
    const words = (text) => text.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)).content).join('');
    const sent = async (name) => {
        const { text } = await h.get(server, '/metrics');
        const sample = text.split('\n').find((line) => line.startsWith(`${name}{model="onebit`));
        return sample ? Number(sample.split(' ').at(-1)) : 0;
    };
    // Sends bytes on one connection and resolves with what came until the connection ends, or `last` was seen so often.
    const raw = async (bytes, last, times) => {
        const net = await import('node:net');
        return new Promise((resolve, reject) => {
            let text = '';
            const socket = net.connect(server.port, '127.0.0.1', () => socket.write(bytes));
            socket.setTimeout(h.patience, () => socket.destroy(new Error(`silent after ${text}`)));
            socket.on('data', (data) => {
                text += data;
                if (last && text.split(last).length > times) socket.destroy();
            });
            socket.on('close', () => resolve(text));
            socket.on('error', reject);
        });
    };
    const request = (version, target, value) => {
        const bytes = JSON.stringify(value);
        return `POST ${target} HTTP/${version}\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${bytes.length}\r\n\r\n${bytes}`;
    };

    test('no event passes the supervisor, and the metrics count all of them', async () => {
        const before = [await sent('onebit_sent_bytes_total'), await sent('onebit_sent_directly_bytes_total')];
        const { text } = await h.post(server, '/completion', body);
        let total;
        await h.until('the request is counted', async () => (total = (await sent('onebit_sent_bytes_total')) - before[0]) > 0);
        assert.equal(total, text.length);
        // what the engine sent before it had the client's socket: the first event at most, as a rule not even that
        const direct = (await sent('onebit_sent_directly_bytes_total')) - before[1];
        assert.ok(direct > total * 0.9, `${direct} of ${total} bytes`);
    });

    test('the text is that of a stream through the supervisor and that of an answer that is no stream', async () => {
        const direct = await h.post(server, '/completion', body);
        const before = await sent('onebit_sent_directly_bytes_total');
        const relayed = await raw(request('1.0', '/completion', body));
        assert.equal(await sent('onebit_sent_directly_bytes_total'), before);
        const whole = (await h.post(server, '/completion', { ...body, stream: false })).json();
        assert.equal(words(direct.text), whole.content);
        assert.equal(words(relayed), whole.content);
    });

    test('a connection serves one stream after another, also when all are asked for at once', async () => {
        const end = '\r\n0\r\n\r\n';
        const text = await raw(request('1.1', '/completion', body).repeat(3), end, 3);
        assert.equal(text.split('HTTP/1.1 200').length, 4);
        const parts = text.split(end).slice(0, 3).map(words);
        assert.ok(parts[0].length > 100);
        assert.deepEqual(parts, [parts[0], parts[0], parts[0]]);
    });

    test('40 streams at once are whole, each its own', async () => {
        const alone = words((await h.post(server, '/completion', body)).text);
        const streams = await Promise.all(Array.from({ length: 40 }, () => h.post(server, '/completion', body)));
        for (const stream of streams) {
            assert.equal(stream.status, 200);
            const last = JSON.parse(stream.text.trim().split('\n\n').at(-1).slice(6));
            assert.equal(last.tokens_predicted, 60);
            assert.equal(words(stream.text).slice(0, 10), alone.slice(0, 10));
        }
    });
});
