// Breaks when a request that is wrong, huge or hostile ends the server, is answered as if it were right, or gets an
// error that does not say what is wrong.
import assert from 'node:assert/strict';
import net from 'node:net';
import { before, describe, test } from 'node:test';
import * as h from './harness.mjs';

const file = h.wholeFile();

// The error's message, after checking the form that each error must have.
function refusal(answer, status) {
    const statuses = [status].flat();
    assert.ok(statuses.includes(answer.status), `status ${answer.status}, expected ${statuses}: ${answer.text}`);
    const { error } = answer.json();
    assert.ok(typeof error.message === 'string' && error.message.length > 0, answer.text);
    assert.ok(error.type, answer.text);
    return error;
}

// A value that the engine judges: answered, or an error of the client's that says what is wrong.
function wrongValue(what, answer) {
    if (answer.status === 200) return;
    assert.ok([400, 404, 413, 422, 501].includes(answer.status), `${JSON.stringify(what).slice(0, 80)}: ${answer.status} ${answer.text.slice(0, 400)}`);
    refusal(answer, answer.status);
}

describe('requests that are wrong', () => {
    let server;
    before(async () => {
        server = await h.startServer(file, { engine: ['-c', '512', '-np', '1', '--no-context-shift'] });
    });
    const alive = async () => assert.match((await h.chat(server, 'What is the capital of France?')).text, /Paris/);
    const chatBytes = (...bytes) => Buffer.concat([Buffer.from('{"messages":[{"role":"user","content":"'), Buffer.from(bytes), Buffer.from('"}]}')]);

    // API01
    test('API01: bytes that are no UTF-8 are a 400', async () => {
        for (const bytes of [[0xc4, 0xe3], [0xff], [0xe2, 0x82], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
            for (const route of ['/v1/chat/completions', '/completion', '/tokenize', '/v1/embeddings', '/v1/messages', '/v1/responses']) {
                refusal(await h.post(server, route, chatBytes(...bytes)), 400);
            }
        }
        await alive();
    });

    // API02
    test('API02: an error that quotes the request is valid UTF-8', async () => {
        for (const body of [
            Buffer.concat([Buffer.from('{"messages":[{"role":"'), Buffer.from([0xc4, 0xe3, 0xff]), Buffer.from('","content":"x"}]}')]),
            Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xfe, 0xff]), Buffer.from('","messages":[]}')]),
            Buffer.from([0xff, 0xfe, 0x7b, 0x00]),
        ]) {
            const answer = await h.post(server, '/v1/chat/completions', body);
            refusal(answer, [400, 404]);
            assert.deepEqual(Buffer.from(answer.text), answer.bytes);
        }
        await alive();
    });

    test('bodies that are no JSON, or not of the right kind', async () => {
        for (const body of ['', '{', 'null', '[]', '"x"', '7', '\0', '{"a":'.repeat(2000), `${'['.repeat(300)}${']'.repeat(300)}`]) {
            refusal(await h.post(server, '/v1/chat/completions', body), 400);
        }
        for (const body of ['{}', '{"messages":7}', '{"messages":[7]}', '{"messages":[{}]}', '{"messages":[{"role":7,"content":7}]}']) {
            wrongValue(body, await h.post(server, '/v1/chat/completions', body));
        }
        await alive();
    });

    // API05
    test('API05: a bad grammar is a 400', async () => {
        for (const grammar of ['root::="a', 'root ::= "a" | undefined_rule', '::=', 'root ::= [a-', 'root ::= (("a")']) {
            refusal(await h.post(server, '/completion', { prompt: 'x', n_predict: 2, grammar }), 400);
        }
        await alive();
    });

    test('a schema that makes no grammar is refused, never ignored', async () => {
        for (const schema of [{ type: 'string', pattern: '^(a$' }, { type: 'no-such-type' }, { $ref: '#/definitions/missing' }]) {
            for (const stream of [false, true]) {
                const response_format = { type: 'json_schema', json_schema: { name: 'a', schema } };
                refusal(await h.chat(server, 'x', { max_tokens: 8, stream, response_format }), 400);
            }
        }
        await alive();
    });

    // API06: llama.cpp takes any string for such a pattern, with a warning in its log
    test('API06: a pattern that makes no grammar is refused with its place, in every form of request', async () => {
        const schema = { type: 'object', properties: { a: { type: 'string', pattern: '^a\\!$' } }, required: ['a'] };
        const chat = (extra) => ({ messages: [{ role: 'user', content: 'x' }], max_tokens: 4, ...extra });
        const tool = { name: 'f', parameters: schema };
        for (const [route, body, place] of [
            ['/v1/chat/completions', chat({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } }), 'response_format.json_schema.schema'],
            ['/v1/chat/completions', chat({ response_format: { type: 'json_object', schema } }), 'response_format.schema'],
            ['/v1/chat/completions', chat({ json_schema: schema, stream: true }), 'json_schema'],
            ['/v1/chat/completions', chat({ tools: [{ type: 'function', function: tool }] }), 'tools[0].function.parameters'],
            ['/completion', { prompt: 'x', n_predict: 4, json_schema: schema }, 'json_schema'],
            ['/v1/completions', { prompt: 'x', max_tokens: 4, json_schema: schema }, 'json_schema'],
            ['/v1/responses', { input: 'x', text: { format: { type: 'json_schema', name: 'a', schema } } }, 'text.format.schema'],
            ['/v1/responses', { input: 'x', tools: [{ type: 'function', ...tool }] }, 'tools[0].parameters'],
            ['/v1/messages', chat({ tools: [{ name: 'f', input_schema: schema }] }), 'tools[0].input_schema'],
        ]) {
            const error = refusal(await h.post(server, route, body), 400);
            assert.ok(error.message.includes(`${place}.properties.a.pattern`), error.message);
            assert.ok(error.message.includes("the escape '\\!'") && error.message.includes('\\xHH'), error.message);
        }
        // who says that it need not be obeyed gets an answer
        const loose = { type: 'json_schema', json_schema: { name: 'a', schema, strict: false } };
        assert.equal((await h.post(server, '/v1/chat/completions', chat({ response_format: loose }))).status, 200);
        await alive();
    });

    test('API06: a constraint of a wrong form is refused, never left out', async () => {
        for (const [route, extra] of [
            ['/v1/chat/completions', { response_format: 'json_object' }],
            ['/v1/chat/completions', { response_format: { type: 'json_schema', schema: {} } }],
            ['/v1/chat/completions', { response_format: { schema: {} } }],
            ['/v1/chat/completions', { grammar: 7 }],
            ['/completion', { grammar: 'root ::= "a"', json_schema: {} }],
            ['/v1/completions', { response_format: { type: 'json_object' } }],
            ['/v1/messages', { output_format: { type: 'json_schema', schema: {} } }],
        ]) {
            const body = { messages: [{ role: 'user', content: 'x' }], prompt: 'x', max_tokens: 4, ...extra };
            refusal(await h.post(server, route, body), 400);
        }
    });

    // API03
    test('API03: a token limit inside a character keeps the text valid', async () => {
        const prompt = '🥐🥐🥐 日本語 日本語 🥐🥐🥐 日本';
        const grammar = 'root ::= [🥐日本語]+';
        for (let limit = 1; limit <= 8; limit++) {
            for (const stream of [false, true]) {
                const answer = await h.post(server, '/completion', { prompt, grammar, n_predict: limit, stream, temperature: 0 });
                assert.equal(answer.status, 200, answer.text);
                assert.deepEqual(Buffer.from(answer.text), answer.bytes, `${limit} tokens, stream ${stream}`);
                assert.doesNotMatch(answer.text, /"error"/);
            }
        }
        await alive();
    });

    // API34
    test('API34: output that is no UTF-8 is replaced, not an error', async () => {
        const { tokens } = (await h.post(server, '/tokenize', { content: 'Ã(' })).json();
        assert.ok(tokens.length >= 1);
        // bytes of half a character, forced by their tokens' bias
        const half = (await h.post(server, '/tokenize', { content: '🥐' })).json().tokens[0];
        for (const stream of [false, true]) {
            const answer = await h.post(server, '/v1/chat/completions', {
                messages: [{ role: 'user', content: 'x' }], max_tokens: 4, temperature: 0, stream, logit_bias: { [half]: 100 },
            });
            assert.equal(answer.status, 200, answer.text);
            assert.deepEqual(Buffer.from(answer.text), answer.bytes);
        }
        await alive();
    });

    // API17, API18
    test('API17, API18: a prompt over the context is a 400 with both counts, also for a stream', async () => {
        const { tokens } = (await h.post(server, '/tokenize', { content: h.longText(900) })).json();
        assert.ok(tokens.length > 520);
        for (const stream of [false, true]) {
            for (const length of [512, 513, 520]) {
                const answer = await h.post(server, '/completion', { prompt: tokens.slice(0, length), n_predict: 1, stream });
                const error = refusal(answer, 400);
                assert.equal(error.type, 'exceed_context_size_error');
                assert.equal(error.n_prompt_tokens, length);
                assert.equal(error.n_ctx, 512);
            }
            const fits = await h.post(server, '/completion', { prompt: tokens.slice(0, 511), n_predict: 1, stream });
            assert.equal(fits.status, 200, fits.text);
        }
    });

    // API19
    test('API19: the context ending while generating is finish_reason length', async () => {
        const { tokens } = (await h.post(server, '/tokenize', { content: h.longText(900) })).json();
        const answer = await h.post(server, '/v1/completions', { prompt: tokens.slice(0, 500), max_tokens: 100, temperature: 0, ignore_eos: true });
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.json().choices[0].finish_reason, 'length');
        assert.ok(answer.json().usage.completion_tokens <= 13);
    });

    // API27
    test('API27: bad arguments in the history are a 4xx or are passed over, never a 500', async () => {
        for (const bad of ['{', '', 'null', '[1', '"']) {
            const messages = [
                { role: 'user', content: 'hi' },
                { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: bad } }] },
                { role: 'tool', tool_call_id: 'a', content: 'x' },
                { role: 'user', content: 'hi' },
            ];
            const answer = await h.chat(server, messages, { max_tokens: 2 });
            assert.ok(answer.status === 200 || answer.status === 400, `${bad}: ${answer.status} ${answer.text}`);
        }
        await alive();
    });

    // API29
    test('API29: a system message in the middle is no server error', async () => {
        const messages = [{ role: 'user', content: 'hi' }, { role: 'assistant', content: 'hi' }, { role: 'system', content: 'Be brief.' }, { role: 'user', content: 'hi' }];
        const answer = await h.chat(server, messages, { max_tokens: 2 });
        assert.ok(answer.status === 200 || answer.status === 400, answer.text);
    });

    test('values out of range', async () => {
        for (const extra of [
            { max_tokens: -5 }, { max_tokens: 1e300 }, { temperature: 'hot' }, { temperature: -1e308 }, { top_k: 2 ** 40 }, { n_probs: 1e9 },
            { logit_bias: { x: 'y' } }, { logit_bias: [[-1, 5]] }, { logit_bias: [[1e12, 5]] }, { stop: 7 }, { stop: Array(5000).fill('q') },
            { seed: -1 }, { seed: 'x' }, { id_slot: 99 }, { id_slot: -7 }, { n: 1000 }, { response_format: { type: 'none-such' } }, { tools: 'x' },
            { tool_choice: 'x' }, { samplers: ['no'] }, { samplers: 7 }, { dry_sequence_breakers: [] }, { lora: [{ id: 99, scale: 1 }] },
        ]) {
            wrongValue(extra, await h.chat(server, 'hi', { max_tokens: 2, ...extra }));
        }
        await alive();
    });

    test('tokens that do not exist', async () => {
        for (const prompt of [[-1], [4096], [2 ** 31], [1.5], [], [[1], 'x', [99999]]]) {
            wrongValue(prompt, await h.post(server, '/completion', { prompt, n_predict: 1 }));
        }
        for (const tokens of [[-1], [4096], ['x'], 7]) {
            wrongValue(tokens, await h.post(server, '/detokenize', { tokens }));
        }
        await alive();
    });

    // API31: llama.cpp answers 500 to many of these
    test('API31: what the client did is a 400 on every route', async () => {
        const hi = [{ role: 'user', content: 'hi' }];
        const chat = (extra) => ['/v1/chat/completions', { messages: hi, max_tokens: 2, ...extra }];
        const message = (one) => chat({ messages: [one] });
        const wrong = [];
        for (const [route, body] of [
            ['/v1/chat/completions', {}],
            chat({ messages: 'x' }),
            message({}),
            message('x'),
            message({ role: 7, content: 'x' }),
            message({ content: 'x' }),
            message({ role: 'user', content: 7 }),
            message({ role: 'user', content: [{ type: 'no' }] }),
            message({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }),
            message({ role: 'assistant', content: null, tool_calls: 'x' }),
            message({ role: 'assistant', content: null, tool_calls: [{}] }),
            chat({ tools: 'x' }),
            chat({ tools: 'x', stream: true }),
            chat({ tools: [7] }),
            chat({ tools: [{ type: 'function' }] }),
            chat({ tools: [{ type: 'function', function: {} }] }),
            chat({ tools: [{ type: 'function', function: { name: 7 } }] }),
            chat({ tool_choice: 'x' }),
            chat({ reasoning_format: 'x' }),
            chat({ reasoning_format: 7 }),
            chat({ dry_sequence_breakers: [] }),
            chat({ response_format: { type: 'no' } }),
            ['/completion', {}],
            ['/completion', { prompt: 7 }],
            ['/completion', { prompt: [] }],
            ['/completion', { prompt: {} }],
            ['/completion', { prompt: [-1] }],
            ['/completion', { prompt: 'x', json_schema: { type: 'no' } }],
            ['/completion', { prompt: 'x', temperature: 'x' }],
            ['/v1/completions', {}],
            ['/v1/completions', { prompt: null }],
            ['/v1/messages', {}],
            ['/v1/messages', { messages: [7] }],
            ['/v1/messages/count_tokens', {}],
            ['/v1/responses', {}],
            ['/v1/responses', { input: 7 }],
            ['/v1/responses', { input: [7] }],
            ['/tokenize', { content: 7 }],
            ['/tokenize', { content: {} }],
            ['/detokenize', { tokens: 'x' }],
            ['/detokenize', { tokens: [-1] }],
            ['/detokenize', { tokens: [4096] }],
            ['/detokenize', { tokens: ['x'] }],
            ['/apply-template', {}],
            ['/apply-template', { messages: 'x' }],
        ]) {
            const answer = await h.post(server, route, body);
            if (answer.status === 400) refusal(answer, 400);
            else wrong.push(`${route} ${JSON.stringify(body)}: ${answer.status} ${answer.text.slice(0, 200)}`);
        }
        assert.deepEqual(wrong, []);
        await alive();
    });

    // each of these ended the engine, or kept it busy until it was killed
    test('what ends or blocks the engine is a 400 that names the field, and never reaches it', async () => {
        const pids = h.enginePids(server);
        const complete = (extra) => ['/completion', { prompt: 'x', n_predict: 2, ...extra }];
        const schema = (json_schema) => complete({ json_schema });
        const optional = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`p${i}`, { type: 'integer' }]));
        const chain = Object.fromEntries(Array.from({ length: 40 }, (_, i) => {
            const next = { $ref: `#/$defs/a${i + 1}` };
            return [`a${i}`, { anyOf: [next, next] }];
        }));
        const lazy = (trigger) => complete({ grammar: 'root ::= "a"', grammar_lazy: true, grammar_triggers: [trigger] });
        const message = { role: 'user', content: 'x' };
        for (const [[route, body], field] of [
            [complete({ grammar: `root ::= ${'('.repeat(20_000)}` }), 'grammar'],
            [complete({ grammar: `root ::= ${'"a"? '.repeat(5000)}` }), 'grammar'],
            [complete({ grammar: 'root ::= "x" "a"{5,2}' }), 'grammar'],
            [complete({ grammar: `root ::= a0\n${Array.from({ length: 40 }, (_, i) => `a${i} ::= a${i + 1} | a${i + 1}\n`).join('')}a40 ::= "x"` }), 'grammar'],
            [complete({ grammar: '%llguidance {}' }), 'grammar'],
            [complete({ grammar: 'root ::= [b-a]', samplers: [], temperature: 0 }), 'grammar'],
            [complete({ grammar: 'a ::= "x" root{0}' }), 'grammar'],
            [complete({ grammar: 'root ::= "a"', grammar_type: 'tool_calls', generation_prompt: '<|im_end|>' }), 'generation_prompt'],
            [lazy({ type: 99, value: '(' }), 'grammar_triggers[0].type'],
            [lazy({ type: 2, value: '('.repeat(20_000) }), 'grammar_triggers[0].value'],
            [schema({ type: 'object', properties: optional }), 'json_schema'],
            [schema({ type: 'object', properties: { ['_'.repeat(30_000)]: {} } }), 'json_schema.properties.'],
            [schema({ type: 'array', items: { type: 'integer' }, minItems: 5, maxItems: 2 }), 'json_schema.minItems'],
            [schema({ type: 'string', minLength: 7, maxLength: 3 }), 'json_schema.minLength'],
            [schema({ type: 'integer', minimum: 1e17 }), 'json_schema.minimum'],
            [schema({ $ref: '#/$defs/a0', $defs: { ...chain, a40: { type: 'integer' } } }), 'json_schema'],
            [complete({ repeat_last_n: 2147483647, repeat_penalty: 1.5 }), 'repeat_last_n'],
            [complete({ dry_penalty_last_n: 2147483647, dry_multiplier: 1 }), 'dry_penalty_last_n'],
            [complete({ top_k: 2147483647, backend_sampling: true }), 'top_k'],
            [complete({ grammar: 'root ::= "a"', samplers: [], logit_bias: Array.from({ length: 4096 }, (_, i) => [i, false]) }), 'logit_bias'],
            [['/v1/chat/completions', { messages: [message], response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object', properties: optional } } } }], 'response_format.json_schema.schema'],
            [['/v1/chat/completions', { messages: [message], tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: optional } } }] }], 'tools[0].function.parameters'],
            [['/v1/messages', { messages: [message], max_tokens: 2, tools: [{ name: 'f', input_schema: { type: 'object', properties: optional } }] }], 'tools[0].input_schema'],
            [['/v1/responses', { input: 'x', max_output_tokens: 2, text: { format: { type: 'json_schema', name: 'a', schema: { type: 'object', properties: optional } } } }], 'text.format.schema'],
            [complete({ n: 2, prompt: '' }), 'n'],
            [['/v1/chat/completions', { messages: Array(20_000).fill(message), max_tokens: 1 }], 'messages'],
        ]) {
            const error = refusal(await h.post(server, route, body), 400);
            assert.ok(error.message.includes(`field '${field}`) && error.message.includes('expected'), `${field}: ${error.message}`);
        }
        assert.deepEqual(h.enginePids(server), pids, 'the engine was started again');
        await alive();
    });

    test('what the engine would misread in silence is a 400 that names the field', async () => {
        const pids = h.enginePids(server);
        const hi = [{ role: 'user', content: 'hi' }];
        for (const [route, body, field] of [
            ...[
                ['max_tokens', 4294967297], ['temperature', true], ['stop', 7], ['stream_options', 7], ['logit_bias', 7], ['tool_choice', 7],
                ['parallel_tool_calls', 1], ['chat_template_kwargs', 7], ['id_slot', 'x'], ['samplers', ['no']], ['lora', [{}]],
                ['messages', []], ['messages', [{ role: 'king', content: 'x' }]], ['reasoning_format', 5], ['model', 'a\0b'],
            ].map(([field, value]) => ['/v1/chat/completions', { messages: hi, max_tokens: 1, [field]: value }, field]),
            ['/completion', { prompt: [4294967297], n_predict: 1 }, 'prompt[0]'],
            ['/tokenize', { content: [4294967297] }, 'content[0]'],
            ['/tokenize', { content: 7 }, 'content'],
            ['/detokenize', { tokens: [4294967297] }, 'tokens[0]'],
        ]) {
            const error = refusal(await h.post(server, route, body), 400);
            assert.ok(error.message.includes(`field '${field}`), `${field}: ${error.message}`);
        }
        for (const number of ['1e999', '7'.repeat(400)]) {
            const error = refusal(await h.post(server, '/completion', Buffer.from(`{"prompt":"x","temperature":${number}}`)), 400);
            assert.ok(error.message.includes('column 29') && !error.message.includes('777'), error.message);
        }
        assert.deepEqual(h.enginePids(server), pids);
        await alive();
    });

    test('what clients send in many forms is answered', async () => {
        const hi = [{ role: 'user', content: 'hi' }];
        for (const extra of [
            { stop: 'x' }, { stop: ['x', 'y'] }, { stop: null }, { tool_choice: 'auto' }, { logit_bias: { 5: -100 } }, { logit_bias: [[5, false]] },
            { seed: -1 }, { seed: 4294967296 }, { top_k: -1 }, { logprobs: true, top_logprobs: 2 }, { stream_options: null }, { temperature: null },
            { n: 1, user: 'me', store: false, metadata: {}, frequency_penalty: 0, presence_penalty: 0 }, { samplers: ['top_k', 'temperature'] },
            { max_tokens: 2.0, reasoning_effort: 'low' }, { chat_template_kwargs: { enable_thinking: false } }, { response_format: { type: 'text' } },
            { messages: [{ role: 'developer', content: 'x' }, { role: 'user', content: [{ type: 'text', text: 'x' }] }] },
            { grammar: 'root ::= [a-z]{1,3} ("a" | "b")*' }, { repeat_last_n: 64, repeat_penalty: 1.1 },
        ]) {
            const answer = await h.chat(server, hi, { max_tokens: 2, ...extra });
            assert.equal(answer.status, 200, `${JSON.stringify(extra)}: ${answer.text}`);
        }
    });

    test('bytes that are no HTTP', async () => {
        for (const bytes of ['\0\0\0\0\r\n\r\n', 'GET\r\n\r\n', 'POST /v1/chat/completions HTTP/1.1\r\ncontent-length: -1\r\n\r\n', 'GET /health HTTP/9.9\r\n\r\n',
            `GET /${'a'.repeat(100_000)} HTTP/1.1\r\n\r\n`, 'POST /completion HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\ncontent-length: 11\r\n\r\n{}', `GET /health HTTP/1.1\r\n${'x: y\r\n'.repeat(20_000)}\r\n`]) {
            await new Promise((resolve) => {
                const socket = net.connect(server.port, '127.0.0.1');
                socket.on('error', resolve);
                socket.on('close', resolve);
                socket.on('data', () => socket.destroy());
                socket.setTimeout(3000, () => socket.destroy());
                socket.write(bytes);
            });
        }
        await alive();
    });

    test('a thousand bad requests, then a good one', async () => {
        const bad = ['{', '', Buffer.from([0xff, 0x00]), '[7]', '{"prompt":"a}'];
        const routes = ['/v1/chat/completions', '/completion', '/v1/messages', '/v1/nothing', '/v1/responses'];
        let at = 0;
        await Promise.all(
            Array.from({ length: 8 }, async () => {
                while (at < 1000) {
                    const i = at++;
                    const answer = await h.post(server, routes[i % 5], bad[Math.floor(i / 5) % 5]);
                    refusal(answer, [400, 404]);
                }
            }),
        );
        await alive();
    });
});
