// Breaks when one of the OpenAI-style routes or of the engine's own ones does not come through the supervisor.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import * as h from './harness.mjs';

const file = h.wholeFile();

const person = {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer', minimum: 0, maximum: 120 } },
    required: ['name', 'age'],
    additionalProperties: false,
};
const weather = {
    type: 'function',
    function: {
        name: 'get_weather',
        description: 'the weather of a city',
        parameters: { type: 'object', properties: { city: { type: 'string', maxLength: 16 } }, required: ['city'], additionalProperties: false },
    },
};

describe('routes of a chat model', () => {
    let server;
    let client;
    before(async () => {
        server = await h.startServer(file, { engine: ['-c', '4096', '-np', '2'] });
        client = h.openai(server);
    });

    test('responses', async () => {
        const answer = await client.responses.create({ model: 'builtin', input: 'What is the capital of France?', temperature: 0, max_output_tokens: 24 });
        assert.match(answer.output_text, /Paris/);
        assert.equal(answer.status, 'completed');
    });

    test('responses as a stream', async () => {
        const stream = await client.responses.create({ model: 'builtin', input: 'What is the capital of Spain?', temperature: 0, stream: true });
        const kinds = [];
        let text = '';
        for await (const event of stream) {
            kinds.push(event.type);
            if (event.type === 'response.output_text.delta') text += event.delta;
        }
        assert.match(text, /Madrid/);
        assert.equal(kinds[0], 'response.created');
        assert.equal(kinds.at(-1), 'response.completed');
    });

    test('a JSON schema holds', async () => {
        for (const seed of [1, 2, 3]) {
            const answer = await client.chat.completions.create({
                model: 'builtin', seed, temperature: 0.9, max_tokens: 96,
                messages: [{ role: 'user', content: 'Describe a person as JSON.' }],
                response_format: { type: 'json_schema', json_schema: { name: 'person', schema: person, strict: true } },
            });
            assert.equal(answer.choices[0].finish_reason, 'stop');
            const value = JSON.parse(answer.choices[0].message.content);
            assert.deepEqual(Object.keys(value).sort(), ['age', 'name']);
            assert.ok(Number.isInteger(value.age) && value.age >= 0 && value.age <= 120, `age ${value.age}`);
        }
    });

    // API06: llama.cpp leaves text.format out; the supervisor says it in the field that llama.cpp obeys
    test('API06: a JSON schema of the responses API holds, also as a stream', async () => {
        const text = { format: { type: 'json_schema', name: 'person', schema: person, strict: true } };
        const input = 'Describe a person as JSON.';
        const check = (output) => assert.deepEqual(Object.keys(JSON.parse(output)).sort(), ['age', 'name']);
        check((await client.responses.create({ model: 'builtin', input, text, temperature: 0.9, max_output_tokens: 96 })).output_text);
        let output = '';
        for await (const event of await client.responses.create({ model: 'builtin', input, text, temperature: 0.9, max_output_tokens: 96, stream: true })) {
            if (event.type === 'response.output_text.delta') output += event.delta;
        }
        check(output);
    });

    test('a grammar holds', async () => {
        const answer = (await h.post(server, '/completion', { prompt: 'yes or no:', n_predict: 8, grammar: 'root ::= "yes" | "no"' })).json();
        assert.match(answer.content, /^(yes|no)$/);
    });

    test('tokenize and detokenize are inverse', async () => {
        const content = 'Zoë paid 3 € for 🥐.';
        const { tokens } = (await h.post(server, '/tokenize', { content })).json();
        assert.ok(tokens.length > 5);
        assert.equal((await h.post(server, '/detokenize', { tokens })).json().content, content);
    });

    test('apply-template shows the prompt', async () => {
        const { prompt } = (await h.post(server, '/apply-template', { messages: [{ role: 'user', content: 'Hi' }] })).json();
        assert.match(prompt, /<\|im_start\|>user\nHi<\|im_end\|>/);
    });

    // API23: the context of one slot is stated
    test('slots and props state the context of one slot', async () => {
        const slots = (await h.get(server, '/slots')).json();
        assert.equal(slots.length, 2);
        assert.ok(slots.every((slot) => slot.is_processing === false));
        const props = (await h.get(server, '/props')).json();
        assert.equal(props.total_slots, 2);
        assert.equal(props.default_generation_settings.n_ctx, slots[0].n_ctx);
    });

    test('metrics count what was made', async () => {
        const count = async () => Number((await h.get(server, '/metrics')).text.match(/^llamacpp:tokens_predicted_total(?:\{[^}]*\})? (\d+)/m)[1]);
        const old = await count();
        await h.chat(server, 'What is the capital of Italy?');
        assert.ok((await count()) >= old + 3);
    });

    // API37: the same seed gives the same text, another one another
    test('a seed repeats the text', async () => {
        const texts = [];
        for (const seed of [42, 42, 42, 42, 42, 43]) {
            const answer = await h.post(server, '/completion', { prompt: 'The old man', temperature: 0.8, seed, n_predict: 16, id_slot: 0, cache_prompt: false });
            texts.push(answer.json().content);
        }
        assert.equal(new Set(texts.slice(0, 5)).size, 1, texts.join('\n'));
        assert.notEqual(texts[5], texts[0]);
    });

    test('an unknown route is a JSON 404', async () => {
        const answer = await h.get(server, '/v1/nothing-here');
        assert.equal(answer.status, 404);
        assert.ok(answer.json().error.message);
    });
});

describe('tools', () => {
    let server;
    let client;
    before(async () => {
        server = await h.startServer(file, { engine: h.toolEngine });
        client = h.openai(server);
    });

    // API26: every finished call parses against its schema
    test('a forced tool call has arguments that parse', async () => {
        for (const seed of [1, 2, 3, 4, 5]) {
            const answer = await client.chat.completions.create({
                model: 'builtin', seed, temperature: 0.8, max_tokens: 96, tools: [weather], tool_choice: 'required',
                messages: [{ role: 'user', content: 'How is the weather in Paris?' }],
            });
            const call = answer.choices[0].message.tool_calls[0];
            assert.equal(call.function.name, 'get_weather');
            assert.equal(typeof JSON.parse(call.function.arguments).city, 'string');
            assert.equal(answer.choices[0].finish_reason, 'tool_calls');
        }
    });

    // API26: a call that was cut off says so
    test('a tool call that is cut off has finish_reason length', async () => {
        const answer = await client.chat.completions.create({
            model: 'builtin', temperature: 0, max_tokens: 6, tools: [weather], tool_choice: 'required',
            messages: [{ role: 'user', content: 'How is the weather in Paris?' }],
        });
        assert.equal(answer.choices[0].finish_reason, 'length');
    });

    // API25: arguments flow in pieces that join to JSON
    test('a forced tool call as a stream', async () => {
        const stream = await client.chat.completions.create({
            model: 'builtin', temperature: 0, max_tokens: 96, stream: true, tools: [weather], tool_choice: 'required',
            messages: [{ role: 'user', content: 'How is the weather in Paris?' }],
        });
        let text = '';
        let pieces = 0;
        for await (const event of stream) {
            const call = event.choices[0]?.delta.tool_calls?.[0];
            if (call?.function?.arguments) {
                text += call.function.arguments;
                pieces++;
            }
        }
        assert.equal(typeof JSON.parse(text).city, 'string');
        assert.ok(pieces > 1, `${pieces} piece`);
    });

    // API07: a hundred kilobytes of tools work, or are refused with the limit and what was sent
    test('API07: many large tools', async () => {
        const tools = Array.from({ length: 60 }, (_, i) => ({
            type: 'function',
            function: { name: `tool_${i}`, description: 'word '.repeat(350), parameters: { type: 'object', properties: { [`value_${i}`]: { type: 'string', description: 'x'.repeat(60) } } } },
        }));
        assert.ok(JSON.stringify(tools).length > 100_000);
        const answer = await h.chat(server, 'hi', { tools, tool_choice: 'required', max_tokens: 16 });
        if (answer.status === 200) return;
        assert.equal(answer.status, 400, answer.text);
        assert.match(answer.json().error.message, /\d+/);
    });

    test('API09: a description changes nothing about the form of a call', async () => {
        for (const description of ['short', 'A "quoted" {text} with \\ and \n a line, <|im_end|> and root ::= "x"', '']) {
            const tool = structuredClone(weather);
            tool.function.description = description;
            const answer = await h.chat(server, 'How is the weather in Paris?', { tools: [tool], tool_choice: 'required', max_tokens: 96 });
            assert.equal(answer.status, 200, answer.text);
            assert.equal(typeof JSON.parse(answer.json().choices[0].message.tool_calls[0].function.arguments).city, 'string');
        }
    });
});
