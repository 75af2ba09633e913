// Breaks when a feature of llama.cpp's server gives another answer through a tandem than on its member alone, or when
// the counters do not show that both members worked. A tandem of CPUs: bitwise the CPU, and fast enough for all of it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import * as h from './harness.mjs';
import { writeLora, writeProjector } from './adapters.mjs';

// A picture of 64 x 64 points in the format of BMP, 24 bits.
function picture() {
    const bytes = Buffer.alloc(54 + 64 * 64 * 3);
    bytes.write('BM');
    for (const [at, value] of [[2, bytes.length], [10, 54], [14, 40], [18, 64], [22, 64]]) bytes.writeUInt32LE(value, at);
    bytes.writeUInt16LE(1, 26);
    bytes.writeUInt16LE(24, 28);
    for (let i = 54; i < bytes.length; i++) bytes[i] = (i * 7919) & 255;
    return `data:image/bmp;base64,${bytes.toString('base64')}`;
}

const file = h.wholeFile();
const tandem = '--onebit-tandem=owner=CPU,prefill=guest:CPU,min=16';
const common = ['-c', '2048', '-np', '2', '-ub', '64', '--cache-ram', '0', '--no-repack'];
const prompt = h.longText(300);

const complete = async (server, body) => {
    const answer = await h.post(server, '/completion', { n_predict: 24, temperature: 0, ignore_eos: true, cache_prompt: false, prompt, ...body });
    assert.equal(answer.status, 200, answer.text);
    return answer.json();
};
const tokensOf = (answer, member, phase) => answer.timings.onebit.members[member]?.[`${phase}_tokens`] ?? 0;
const split = (answer) => {
    assert.ok(tokensOf(answer, 'guest:CPU', 'prefill') > 0, `not split: ${JSON.stringify(answer.timings.onebit)}`);
    assert.equal(answer.timings.onebit.unsplit, undefined);
};

// The same server twice: through the tandem, and on its member alone.
async function pair(context, engine = [], options = {}) {
    const all = [...common, ...engine];
    const both = await h.startServer(context, { ...options, engine: [tandem, ...all] });
    const alone = await h.startServer(context, { ...options, engine: all });
    return { both, alone };
}
async function sameAnswer(servers, body, isSplit = true) {
    const [ours, expected] = [await complete(servers.both, body), await complete(servers.alone, body)];
    assert.equal(ours.content, expected.content);
    assert.equal(expected.timings.onebit, undefined);
    if (isSplit) split(ours);
    return ours;
}

describe('through a tandem', () => {
    let servers;
    let slots;
    before(async () => {
        slots = h.newFolder();
        file.after(() => fs.rmSync(slots, { recursive: true, force: true }));
        servers = await pair(file, ['--slot-save-path', `${slots}/`]);
    });

    test('a prompt is read on one member and answered on the other; answer, log, metrics and ps say so', async () => {
        const answer = await sameAnswer(servers, {});
        assert.ok(tokensOf(answer, 'CPU', 'decode') >= 23);
        assert.equal(answer.timings.onebit.mixed, false);
        assert.match(servers.both.log, /info engine: .*Tandem0: prefill on guest:CPU, decode on CPU/);
        const { text } = await h.get(servers.both, '/metrics');
        assert.match(text, /^onebit_tandem_tokens_total\{[^}]*member="guest:CPU",phase="prefill"\} [1-9]/m);
        assert.match(text, /^onebit_tandem_tokens_total\{[^}]*member="CPU",phase="decode"\} [1-9]/m);
        assert.match(text, /^onebit_tandem_handoffs_total\{[^}]*\} [1-9]/m);
        const { engines } = (await h.get(servers.both, '/onebit/ps')).json();
        assert.deepEqual(engines[0].devices, ['CPU', 'guest:CPU']);
        assert.equal(engines[0].tandem.prefill, 'guest:CPU');
        const short = await complete(servers.both, { prompt: 'Hello' });
        assert.match(short.timings.onebit.unsplit, /16 tokens/);
    });

    test('each dialect has the account in its timings', async () => {
        const chat = await h.chat(servers.both, prompt.slice(0, 600));
        assert.ok(chat.json().timings.onebit.members['guest:CPU'].prefill_tokens > 0, chat.text);
        const stream = await h.chat(servers.both, prompt.slice(0, 600), { stream: true });
        assert.match(stream.text, /"onebit":\{/);
        assert.match(stream.text, /data: \[DONE\]\n\n$/);
        const plain = await h.post(servers.both, '/v1/completions', { prompt, max_tokens: 4, temperature: 0 });
        assert.ok(plain.json().timings.onebit.members['guest:CPU'].prefill_tokens > 0, plain.text);
    });

    test('a saved slot goes on where it was, in the other server too', async () => {
        for (const [from, to] of [[servers.both, servers.alone], [servers.alone, servers.both], [servers.both, servers.both]]) {
            await complete(from, { id_slot: 0, cache_prompt: true, n_predict: 1 });
            const saved = await h.post(from, '/slots/0?action=save', { filename: 'one.bin' });
            assert.equal(saved.status, 200, saved.text);
            await complete(to, { id_slot: 1, prompt: 'Something else', cache_prompt: true, n_predict: 2 });
            const restored = await h.post(to, '/slots/1?action=restore', { filename: 'one.bin' });
            assert.equal(restored.status, 200, restored.text);
            const more = { id_slot: 1, cache_prompt: true, prompt: `${prompt} And then` };
            const answer = await complete(to, more);
            assert.ok(answer.timings.cache_n > 200, JSON.stringify(answer.timings));
            assert.equal(answer.content, (await complete(servers.alone, { prompt: `${prompt} And then` })).content);
        }
    });

    test('requests at the same time are the ones alone, and their accounts are the process', async () => {
        const sum = async () => {
            const { engines } = (await h.get(servers.both, '/onebit/ps')).json();
            return engines[0].tandem.members.reduce((all, one) => all + one.prefill_tokens + one.decode_tokens, 0);
        };
        const texts = [prompt, h.longText(120), 'Once upon a time', h.longText(500)];
        const start = await sum();
        const answers = await Promise.all(texts.map((text) => complete(servers.both, { prompt: text })));
        const parts = answers.flatMap((answer) => Object.values(answer.timings.onebit.members));
        assert.equal(parts.reduce((all, one) => all + one.prefill_tokens + one.decode_tokens, 0), (await sum()) - start);
        for (const [i, text] of texts.entries())
            assert.equal(answers[i].content, (await complete(servers.alone, { prompt: text })).content, `request ${i}`);
    });

    test('a request whose client leaves ends, and the next one is right', async () => {
        const open = h.openRequest(servers.both, 'POST', '/completion', { prompt, n_predict: 1500, ignore_eos: true, stream: true });
        open.on('error', () => {});
        await new Promise((resolve) => open.on('response', (response) => response.once('data', resolve)));
        open.destroy();
        await h.until('the slot is free', async () => !(await h.get(servers.both, '/slots')).json().some((slot) => slot.is_processing));
        await sameAnswer(servers, {});
    });
});

describe('through a tandem, servers of their own', () => {
    test('the context is shifted', async (context) => {
        const servers = await pair(context, ['-c', '512', '-np', '1', '--context-shift']);
        const answer = await sameAnswer(servers, { prompt: h.longText(180), n_predict: 420 });
        assert.equal(answer.tokens_predicted, 420);
        assert.ok(answer.truncated, 'there was no shift');
    });

    for (const [name, engine] of [['flash attention off', ['-fa', 'off']], ['flash attention on', ['-fa', 'on']],
        ['a quantised cache', ['-fa', 'on', '-ctk', 'q8_0', '-ctv', 'q8_0']]])
        test(name, async (context) => {
            await sameAnswer(await pair(context, engine), {});
        });

    test('embeddings', async (context) => {
        const servers = await pair(context, ['--embeddings', '--pooling', 'mean', '-ub', '512', '-b', '512']);
        const body = { input: [prompt, 'short'] };
        const [ours, alone] = [await h.post(servers.both, '/v1/embeddings', body), await h.post(servers.alone, '/v1/embeddings', body)];
        assert.equal(ours.status, 200, ours.text);
        assert.deepEqual(ours.json().data, alone.json().data);
        assert.match((await h.get(servers.both, '/metrics')).text, /^onebit_tandem_tokens_total\{[^}]*member="guest:CPU",phase="prefill"\} [1-9]/m);
    });

    test('a LoRA adapter', async (context) => {
        const adapter = path.join(h.temporaryFolder(context), 'adapter.gguf');
        writeLora(adapter, h.model);
        const servers = await pair(context, ['--lora', adapter]);
        const adapted = await sameAnswer(servers, {});
        const without = await complete(servers.both, { lora: [{ id: 0, scale: 0 }] });
        assert.notEqual(adapted.content, without.content, 'the adapter changes nothing');
        assert.equal(without.content, (await complete(servers.alone, { lora: [{ id: 0, scale: 0 }] })).content);
    });

    test('a picture, through a projector', async (context) => {
        const projector = path.join(h.temporaryFolder(context), 'projector.gguf');
        writeProjector(projector, h.model);
        const servers = await pair(context, ['--mmproj', projector]);
        const ask = async (server) => {
            const content = [{ type: 'text', text: prompt.slice(0, 400) }, { type: 'image_url', image_url: { url: picture() } }];
            const answer = await h.post(server, '/v1/chat/completions', { messages: [{ role: 'user', content }], temperature: 0, max_tokens: 16 });
            assert.equal(answer.status, 200, answer.text);
            return answer.json();
        };
        const [ours, alone] = [await ask(servers.both), await ask(servers.alone)];
        assert.equal(ours.choices[0].message.content, alone.choices[0].message.content);
        assert.equal(ours.usage.prompt_tokens, alone.usage.prompt_tokens);
        const words = await h.chat(servers.alone, prompt.slice(0, 400), { max_tokens: 1 });
        assert.ok(ours.usage.prompt_tokens >= words.json().usage.prompt_tokens + 16, 'the picture was not read');
        split(ours);
    });

    test('speculative decoding with the model, quantised, as its own draft', async (context) => {
        const draft = path.join(h.models, 'onebit-tiny-Q4_K_M.gguf');
        const servers = await pair(context, ['-md', draft, '--spec-type', 'draft-simple', '-np', '1']);
        const answer = await sameAnswer(servers, { n_predict: 48 });
        assert.ok(answer.timings.draft_n > 0, JSON.stringify(answer.timings));
        const plain = await h.startServer(context, { engine: [...common] });
        assert.equal(answer.content, (await complete(plain, { n_predict: 48 })).content);
    });

    test('what the member of a phase cannot run goes to the other, and with strict it is an error', async (context) => {
        const env = { ONEBIT_TANDEM: 'deny=guest:CPU/SWIGLU' };
        const servers = await pair(context, [], { env });
        const answer = await sameAnswer(servers, {}, false);
        assert.match(answer.timings.onebit.unsplit, /SWIGLU/);
        assert.match((await h.get(servers.both, '/metrics')).text, /^onebit_tandem_fallbacks_total\{[^}]*SWIGLU[^}]*\} [1-9]/m);
        const strict = await h.startServer(context, { engine: [tandem, ...common], env: { ONEBIT_TANDEM: 'strict=1,deny=guest:CPU/SWIGLU' } });
        const refused = await h.post(strict, '/completion', { prompt, n_predict: 2 });
        assert.equal(refused.status, 500, refused.text);
        assert.match(refused.json().error.message, /SWIGLU.*guest:CPU/);
    });
});

describe('a member of a tandem that takes the engine with it', () => {
    for (const [what, member, fault] of [['aborts', 'guest:CPU', 'abort/guest:CPU/3'], ['is lost', 'guest:CPU', 'lost/guest:CPU/3'],
        ['hangs', 'guest:CPU', 'hang/guest:CPU/3'], ['aborts and owns the memory', 'CPU', 'abort/CPU/40']])
        test(`${what}: 503 member_failed, then the other device alone`, async (context) => {
            const engine = [tandem, ...common];
            const server = await h.startServer(context, { engine, env: { ONEBIT_TANDEM: `fault=${fault}` }, flags: ['--hang-timeout', '3s'] });
            const failed = await h.post(server, '/completion', { prompt, n_predict: 100, ignore_eos: true });
            assert.equal(failed.status, 503, failed.text);
            const { error } = failed.json();
            assert.equal(error.code, 'member_failed');
            assert.match(error.message, new RegExp(`member ${member} failed`));
            await h.until('it serves again', async () => (await h.get(server, '/health')).status === 200);
            const answer = await complete(server, {});
            assert.match(answer.timings.onebit.excluded[member], /failed/);
            const { text } = await h.get(server, '/metrics');
            const kind = what === 'hangs' ? 'hang' : 'crash';
            assert.match(text, new RegExp(`^onebit_engine_member_failures_total\\{[^}]*member="${member}",kind="${kind}"\\} 1`, 'm'));
            assert.match(text, new RegExp(`^onebit_engine_member_excluded\\{[^}]*member="${member}"\\} 1`, 'm'));
            const { engines } = (await h.get(server, '/onebit/ps')).json();
            assert.equal(engines[0].excluded_members[0].member, member);
            assert.equal(engines[0].tandem, undefined);
        });

    test('a stream ends with an error event of that code', async (context) => {
        const server = await h.startServer(context, { engine: [tandem, ...common], env: { ONEBIT_TANDEM: 'fault=abort/CPU/30' } });
        const answer = await h.post(server, '/completion', { prompt, n_predict: 200, ignore_eos: true, stream: true });
        assert.match(answer.text, /"code":"member_failed"/);
    });
});

describe('a tandem by the flags of 1bit serve, prompts on software Vulkan', { skip: h.noSoftwareVulkan() }, () => {
    const flags = ['--prefill-device', 'Vulkan0', '--prefill-min-tokens', '16'];
    const engine = ['-c', '512', '-np', '1', '-ub', '64', '--no-repack'];

    test('when Vulkan ends the engine, the CPU goes on alone', async (context) => {
        const server = await h.startServer(context, { flags, engine, env: { ONEBIT_TANDEM: 'fault=abort/Vulkan0/0' } });
        assert.match(server.log, /on CPU, prompts on Vulkan0/);
        const failed = await h.post(server, '/completion', { prompt, n_predict: 4 });
        assert.equal(failed.status, 503, failed.text);
        assert.equal(failed.json().error.code, 'member_failed');
        await h.until('it serves again', async () => (await h.get(server, '/health')).status === 200);
        const { engines } = (await h.get(server, '/onebit/ps')).json();
        assert.deepEqual(engines[0].devices, ['CPU']);
        assert.ok(engines[0].memory.every((place) => place.device === 'CPU'), JSON.stringify(engines[0].memory));
        assert.match((await complete(server, {})).timings.onebit.excluded.Vulkan0, /Vulkan0 failed: killed by signal 6/);
    });

    test('it can be left out from the start', async (context) => {
        const out = ['--exclude-member', 'vulkan0', '--reason', 'its driver is old'];
        const server = await h.startServer(context, { flags: [...flags, ...out], engine });
        assert.deepEqual((await complete(server, {})).timings.onebit, { excluded: { Vulkan0: 'its driver is old' } });
        assert.match(server.log, /without Vulkan0: its driver is old/);
    });

    test('with --strict the CPU does not take its place', async (context) => {
        const server = await h.startServer(context, { flags: [...flags, '--strict'], engine, env: { ONEBIT_TANDEM: 'deny=Vulkan0/SWIGLU' } });
        const refused = await h.post(server, '/completion', { prompt, n_predict: 2 });
        assert.equal(refused.status, 500, refused.text);
        assert.match(refused.json().error.message, /SWIGLU.*Vulkan0/);
    });
});
