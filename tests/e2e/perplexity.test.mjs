// Breaks when a device computes other numbers than the CPU, or a quantised variant is worse than its card says.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import * as h from './harness.mjs';

const tool = path.join(h.buildFolder, 'bin/llama-perplexity');
const heldOut = path.join(h.root, 'models/heldout_short.txt');
const variant = (type) => path.join(h.models, `onebit-tiny-${type}.gguf`);

async function perplexity(context, file, device, chunks, length, extra = []) {
    const folder = h.temporaryFolder(context);
    const args = ['-m', file, '-f', heldOut, '-c', String(length), '-b', String(length), '--chunks', String(chunks), '-s', '1',
        ...(device === 'CPU' ? ['-dev', 'none'] : ['-dev', device, '-ngl', '99']), ...extra];
    const result = await h.run(tool, args, { env: h.environment(folder) });
    assert.equal(result.code, 0, result.stderr.slice(-3000));
    return result.stdout + result.stderr;
}
const final = (output) => Number(output.match(/Final estimate: PPL = ([\d.]+)/)[1]);

describe('perplexity of held-out text', () => {
    test('the CPU gives what the model card says', async (context) => {
        const value = final(await perplexity(context, h.model, 'CPU', -1, 512));
        assert.ok(Math.abs(value / 23.23 - 1) < 0.01, `perplexity ${value}, the card says 23.23`);
    });

    test('software Vulkan is within 1 % of the CPU', { skip: h.noSoftwareVulkan() }, async (context) => {
        for (const file of [h.model, variant('Q4_K_M')]) {
            const cpu = final(await perplexity(context, file, 'CPU', 2, 128));
            const vulkan = final(await perplexity(context, file, 'Vulkan0', 2, 128));
            console.log(`${path.basename(file)}: CPU ${cpu}, Vulkan ${vulkan}`);
            assert.ok(Math.abs(vulkan / cpu - 1) < 0.01, `${path.basename(file)}: CPU ${cpu}, Vulkan ${vulkan}`);
        }
    });
});

describe('quantised variants against f16', () => {
    // mean KL and share of equal top tokens over the whole text, from models/MODEL_CARD.md, with room for a quarter of it
    const limits = { Q8_0: [0.006, 94], Q4_K_M: [0.2, 75], Q4_0: [0.36, 68], IQ4_XS: [0.26, 72], IQ3_XXS: [1.5, 44] };
    test('KL and top token', async (context) => {
        const base = path.join(h.temporaryFolder(context), 'f16.logits');
        await perplexity(context, h.model, 'CPU', 8, 512, ['--kl-divergence-base', base]);
        for (const [type, [kl, top]] of Object.entries(limits)) {
            assert.ok(fs.existsSync(variant(type)), `${variant(type)} is missing: build the target models`);
            const output = await perplexity(context, variant(type), 'CPU', 8, 512, ['--kl-divergence-base', base, '--kl-divergence']);
            const [, foundKl] = output.match(/Mean\s+KLD:\s+([-\d.]+)/);
            const [, foundTop] = output.match(/Same top p:\s+([\d.]+)/);
            console.log(`${type}: mean KL ${foundKl}, same top token ${foundTop} %`);
            assert.ok(Number(foundKl) < kl && Number(foundKl) > 0, `${type}: mean KL ${foundKl}, expected below ${kl}`);
            assert.ok(Number(foundTop) > top, `${type}: same top token ${foundTop} %, expected above ${top}`);
        }
    });

    for (const type of ['Q8_0', 'Q4_K_M', 'Q4_0', 'IQ4_XS']) {
        test(`${type} knows the capital of France`, async (context) => {
            const server = await h.startServer(context, { model: variant(type), engine: ['-c', '512'] });
            assert.match((await h.chat(server, 'What is the capital of France?')).text, /Paris/);
        });
    }
});
