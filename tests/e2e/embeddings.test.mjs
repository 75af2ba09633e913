// Breaks when embeddings or scores of documents are wrong, out of order or not refused well, on the device named by
// ONEBIT_TEST_DEVICE (CPU, or Vulkan0 which is software Vulkan, without the long inputs).
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import * as h from './harness.mjs';

const device = process.env.ONEBIT_TEST_DEVICE ?? 'CPU';
const skip = device.startsWith('Vulkan') && h.noSoftwareVulkan();
const long = device.startsWith('Vulkan') && 'takes minutes on software Vulkan';
const file = h.wholeFile();

describe(`routes of an embedding model on ${device}`, { skip }, () => {
    let server;
    let client;
    before(async () => {
        server = await h.startServer(file, { device, engine: ['--embeddings', '--pooling', 'mean', '-c', '1024', '-ub', '512', '-np', '2'] });
        client = h.openai(server);
    });
    const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

    test('embeddings have length one and differ for different texts', async () => {
        const answer = await client.embeddings.create({
            model: 'builtin', encoding_format: 'float',
            input: ['The capital of France is Paris.', 'The capital of Spain is Madrid.', 'Ben ate seven apples and slept.'],
        });
        const [france, spain, apples] = answer.data.map((entry) => entry.embedding);
        assert.equal(france.length, 256);
        assert.ok(Math.abs(dot(france, france) - 1) < 1e-3);
        assert.ok(dot(france, spain) > 0.5 && dot(france, spain) < 0.9999, `${dot(france, spain)}`);
        assert.ok(dot(france, apples) < 0.9999);
    });

    // API33: many inputs in one request, in order
    test('a thousand inputs keep their order', { skip: long }, async () => {
        const input = Array.from({ length: 1000 }, (_, i) => `Number ${i}`);
        const answer = await client.embeddings.create({ model: 'builtin', input, encoding_format: 'float' });
        assert.equal(answer.data.length, 1000);
        assert.deepEqual(answer.data.map((entry) => entry.index), input.map((_, i) => i));
        const [one] = (await client.embeddings.create({ model: 'builtin', input: [input[777]], encoding_format: 'float' })).data;
        assert.ok(dot(one.embedding, answer.data[777].embedding) > 0.999);
    });

    // API31: an input above the physical batch is refused with both numbers
    test('API31: an input above the physical batch', async () => {
        const { tokens } = (await h.post(server, '/tokenize', { content: h.longText(700) })).json();
        assert.ok(tokens.length > 512, `${tokens.length} tokens`);
        const answer = await h.post(server, '/v1/embeddings', { input: h.longText(700) });
        assert.equal(answer.status, 400, answer.text);
        const { error } = answer.json();
        assert.equal(error.n_ubatch, 512);
        assert.ok(error.n_prompt_tokens >= tokens.length && error.n_prompt_tokens <= tokens.length + 2, answer.text);
        assert.match(error.message, new RegExp(`512 .*${error.n_prompt_tokens}`));
        await assert.rejects(client.embeddings.create({ model: 'builtin', input: ['short', h.longText(700)] }), /512/);
        assert.match((await h.post(server, '/v1/embeddings', { input: 'short' })).text, /"embedding"/);
    });

    test('inputs of a wrong type are a 400', async () => {
        for (const body of [{}, { input: 7 }, { input: {} }, { input: [] }, { input: '' }, { input: 'x', encoding_format: 7 }, { input: [[-1]] }, { input: 'x', encoding_format: 'no' }]) {
            for (const route of ['/v1/embeddings', '/embedding']) {
                const answer = await h.post(server, route, body);
                assert.equal(answer.status, 400, `${route} ${JSON.stringify(body)}: ${answer.status} ${answer.text}`);
            }
        }
    });

    test('reranking refuses a model that cannot rank', async () => {
        const answer = await h.post(server, '/v1/rerank', { query: 'a', documents: ['b'] });
        assert.ok([400, 501].includes(answer.status), `${answer.status} ${answer.text}`);
        assert.ok(answer.json().error.message);
    });
});

// The built-in model cannot rank well, but it can be made to give scores.
describe(`routes of a model that ranks on ${device}`, { skip }, () => {
    let server;
    before(async () => {
        server = await h.startServer(file, { device, engine: ['--reranking', '-c', '1024', '-np', '1', '-ub', '64', '-b', '64'] });
    });

    test('documents get scores', async () => {
        const { results } = (await h.post(server, '/v1/rerank', { query: 'a', documents: ['b', 'c'] })).json();
        assert.deepEqual(results.map((one) => one.index).sort(), [0, 1]);
        assert.ok(results.every((one) => Number.isFinite(one.relevance_score)));
    });

    test('API31: a document above the physical batch is refused with both numbers', async () => {
        const answer = await h.post(server, '/v1/rerank', { query: 'a', documents: ['b', h.longText(200)] });
        assert.equal(answer.status, 400, answer.text);
        const { error } = answer.json();
        assert.equal(error.n_ubatch, 64);
        assert.ok(error.n_prompt_tokens > 100 && error.message.includes(`${error.n_prompt_tokens}`), answer.text);
    });

    test('fields of a wrong type are a 400', async () => {
        for (const body of [{}, { query: 7, documents: ['x'] }, { query: 'a' }, { query: 'a', documents: 7 }, { query: 'a', documents: [7] }, { query: 'a', documents: [] }]) {
            const answer = await h.post(server, '/v1/rerank', body);
            assert.equal(answer.status, 400, `${JSON.stringify(body)}: ${answer.status} ${answer.text}`);
        }
    });
});
