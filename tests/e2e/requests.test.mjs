// Breaks when a request as client programs send it is refused, or answered as if a part of it had not been sent.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import * as h from './harness.mjs';

const file = h.wholeFile();
const question = [{ role: 'user', content: 'What is the capital of France?' }];
const parameters = { type: 'object', properties: { city: { type: 'string', maxLength: 8 } }, required: ['city'] };
const names = ['get_weather', 'look_up'];

async function refused(promise, status, pattern) {
    const error = await promise.then(() => assert.fail('it was answered'), (thrown) => thrown);
    assert.equal(error.status, status, String(error));
    assert.match(error.message, pattern);
    return error;
}

describe('tools that are named', () => {
    let server;
    let client;
    let anthropic;
    before(async () => {
        server = await h.startServer(file, { engine: h.toolEngine });
        client = h.openai(server);
        anthropic = new h.Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0, timeout: h.patience });
    });
    const tools = names.map((name) => ({ type: 'function', function: { name, description: null, parameters } }));
    const flat = names.map((name) => ({ type: 'function', name, parameters, strict: null }));
    const ask = { model: 'builtin', temperature: 0, max_tokens: 64, messages: question };

    test('that one is called, on each API', async () => {
        for (const name of names) {
            const chat = await client.chat.completions.create({ ...ask, tools, tool_choice: { type: 'function', function: { name } } });
            assert.equal(chat.choices[0].message.tool_calls[0].function.name, name);
            const response = await client.responses.create({
                model: 'builtin', temperature: 0, max_output_tokens: 64, input: 'Paris?', tools: flat, tool_choice: { type: 'function', name },
            });
            assert.equal(response.output.find((item) => item.type === 'function_call').name, name);
            const message = await anthropic.messages.create({
                ...ask, tools: names.map((one) => ({ name: one, input_schema: parameters })), tool_choice: { type: 'tool', name },
            });
            assert.equal(message.content.find((block) => block.type === 'tool_use').name, name);
        }
    });

    test('allowed tools are those that can be called', async () => {
        const response = await client.responses.create({
            model: 'builtin', temperature: 0, max_output_tokens: 64, input: 'Paris?', tools: flat,
            tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'look_up' }] },
        });
        assert.equal(response.output.find((item) => item.type === 'function_call').name, 'look_up');
    });

    test('an unknown name, or a call without tools, is refused', async () => {
        await refused(client.chat.completions.create({ ...ask, tools, tool_choice: { type: 'function', function: { name: 'other' } } }),
            400, /tool_choice\.function\.name.*'get_weather', 'look_up'.*'other'/);
        await refused(client.chat.completions.create({ ...ask, tool_choice: 'required' }), 400, /tool_choice/);
    });

    test('a pattern without a grammar stands for any string with --loose-patterns', async (context) => {
        const pattern = { type: 'object', properties: { city: { type: 'string', pattern: '^\\w+$' } }, required: ['city'] };
        const body = { ...ask, tools: [{ type: 'function', function: { name: 'look_up', parameters: pattern } }], tool_choice: 'required' };
        await refused(client.chat.completions.create(body), 400, /tools\[0\]\.function\.parameters\.properties\.city\.pattern/);
        const loose = await h.startServer(context, { flags: ['--loose-patterns'], engine: h.toolEngine });
        for (let i = 0; i < 2; i++) {
            const answer = await h.openai(loose).chat.completions.create(body);
            assert.equal(answer.choices[0].message.tool_calls[0].function.name, 'look_up');
        }
        assert.equal(loose.log.split('stands for any string').length, 2, loose.log);
    });
});

describe('requests of many clients', () => {
    let server;
    let client;
    let anthropic;
    before(async () => {
        server = await h.startServer(file, { engine: ['-c', '2048', '-np', '1'] });
        client = h.openai(server);
        anthropic = new h.Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0, timeout: h.patience });
    });
    const ask = { model: 'builtin', temperature: 0, max_tokens: 16, messages: question };
    const chat = async (extra) => (await client.chat.completions.create({ ...ask, ...extra })).choices[0];

    test('a call is refused where the template has no tools', async () => {
        const tools = [{ type: 'function', function: { name: 'look_up', parameters } }];
        await refused(chat({ tools, tool_choice: 'required' }), 400, /tool_choice.*has no tools/);
        assert.match((await chat({ tools })).message.content, /Paris/);
    });

    test('nulls are as if absent', async () => {
        const message = { role: 'assistant', content: 'Hello.', name: null, refusal: null, tool_calls: null, function_call: null, audio: null, reasoning_content: null };
        const messages = [{ role: 'user', content: 'Hi', name: null }, message, { role: 'user', content: [{ type: 'text', text: question[0].content, cache_control: null }] }];
        const none = { grammar: null, stop: null, top_logprobs: null, tools: null, reasoning_format: null, best_of: null, functions: null };
        assert.match((await chat({ messages, ...none })).message.content, /Paris/);
        await refused(chat({ messages: [{ role: null, content: 'x' }] }), 400, /messages\[0\]\.role/);
        const answer = await anthropic.messages.create({ ...ask, system: null, tools: null, tool_choice: null, stop_sequences: null });
        assert.match(answer.content[0].text, /Paris/);
    });

    test('empty stop strings stop nothing', async () => {
        for (const stop of ['', [''], ['', 'Berlin']]) assert.match((await chat({ stop })).message.content, /Paris/);
        const message = await anthropic.messages.create({ ...ask, stop_sequences: [''] });
        assert.match(message.content[0].text, /Paris/);
    });

    test('top_logprobs of 0 ask for nothing', async () => {
        assert.match((await chat({ top_logprobs: 0 })).message.content, /Paris/);
    });

    test('items of earlier responses are read, references refused', async () => {
        const create = (input) => client.responses.create({ model: 'builtin', temperature: 0, max_output_tokens: 12, input, instructions: null, tools: null });
        const name = { role: 'user', content: 'My name is Rosa.' };
        const nice = { id: null, type: 'message', role: 'assistant', status: null, content: [{ type: 'output_text', text: 'Nice to meet you, Rosa.', annotations: null }] };
        const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' };
        const last = { role: 'user', content: 'What is my name?' };
        assert.match((await create([name, reasoning, nice, last])).output_text, /Rosa/);
        assert.match((await create([name, { role: 'assistant', content: 'Nice to meet you, Rosa.' }, last])).output_text, /Rosa/);
        assert.ok((await create([name, { ...nice, content: [{ type: 'refusal', refusal: 'No.' }] }, last])).output_text);
        await refused(create([{ type: 'item_reference', id: 'msg_1' }, last]), 400, /input\[0\].*reference/);
    });

    test('forms of other servers are held, or refused', async () => {
        const schema = { type: 'object', properties: { a: { type: 'integer', minimum: 1, maximum: 9 } }, required: ['a'] };
        for (const form of [{ guided_json: schema }, { guided_json: JSON.stringify(schema) }, { format: schema }, { structured_outputs: { json: schema } },
            { text: { format: { type: 'json_schema', name: 'n', schema } } }]) {
            const { a } = JSON.parse((await chat({ ...form, max_tokens: 48 })).message.content);
            assert.ok(a >= 1 && a <= 9, JSON.stringify(form));
        }
        for (const form of [{ guided_choice: ['red', '"blue"'] }, { guided_grammar: 'root ::= "red" | "\\"blue\\""' }]) {
            assert.ok(['red', '"blue"'].includes((await chat(form)).message.content), JSON.stringify(form));
            const text = (await client.completions.create({ model: 'builtin', prompt: 'Say', max_tokens: 16, temperature: 0, ...form })).choices[0].text;
            assert.ok(['red', '"blue"'].includes(text), text);
        }
        for (const form of [{ guided_regex: 'a+' }, { guided_grammar: 'start: "a"' }, { format: 'yaml' }, { functions: [{ name: 'f' }] }]) {
            await refused(chat(form), 400, new RegExp(`field '${Object.keys(form)[0]}'`));
        }
    });

    test('what no engine does is refused', async () => {
        for (const extra of [{ echo: true }, { suffix: 'x' }, { best_of: 2 }]) {
            await refused(client.completions.create({ model: 'builtin', prompt: 'x', max_tokens: 2, ...extra }), 400, new RegExp(Object.keys(extra)[0]));
        }
        const document = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } };
        const error = await refused(anthropic.messages.create({ ...ask, messages: [{ role: 'user', content: [document] }] }), 400, /content\[0\]\.type/);
        assert.equal(error.error.type, 'error');
        assert.equal(error.error.error.type, 'invalid_request_error');
        await refused(anthropic.messages.create({ ...ask, tools: [{ type: 'web_search_20250305', name: 'web_search' }] }), 400, /tools\[0\]\.type/);
        await refused(client.embeddings.create({ model: 'builtin', input: 'x' }), 501, /1bit serve MODEL -- --embeddings/);
    });
});
