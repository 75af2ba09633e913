// Breaks when a device computes other numbers than the CPU, or a quantised variant is worse than its card says.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import * as h from './harness.mjs';

const tool = path.join(h.buildFolder, 'bin/llama-perplexity');
const heldOut = path.join(h.root, 'models/heldout_short.txt');
const variant = (type) => path.join(h.models, `onebit-tiny-${type}.gguf`);

const finalEstimate = [/Final estimate: PPL = ([\d.]+)/];
const againstBase = [/Mean PPL\(Q\)\s+:\s+([\d.]+)/, /Mean\s+KLD:\s+([-\d.]+)/, /Same top p:\s+([\d.]+)/];

// The numbers that the patterns find in what the tool prints.
async function perplexity(context, file, device, chunks, length, patterns, extra = []) {
    const folder = h.temporaryFolder(context);
    const args = ['-m', file, '-f', heldOut, '-c', String(length), '-b', String(length), '--chunks', String(chunks), '-t', '1',
        ...(device === 'CPU' ? ['-dev', 'none'] : ['-dev', device, '-ngl', '99']), ...extra];
    // the tool's log thread sometimes loses lines or everything at exit, with exit code 0
    for (let i = 0; i < 4; i++) {
        const result = await h.run(tool, args, { env: h.environment(folder) });
        assert.equal(result.code, 0, result.stderr.slice(-3000));
        const found = patterns.map((pattern) => (result.stdout + result.stderr).match(pattern));
        if (found.every(Boolean)) return found.map((match) => Number(match[1]));
    }
    throw new Error(`${tool} ${args.join(' ')} printed no ${patterns.join(' or no ')} in four runs`);
}
const final = async (...args) => (await perplexity(...args, finalEstimate))[0];

describe('perplexity of held-out text', () => {
    test('the CPU gives what the model card says', async (context) => {
        const value = await final(context, h.model, 'CPU', -1, 512);
        assert.ok(Math.abs(value / 23.23 - 1) < 0.01, `perplexity ${value}, the card says 23.23`);
    });

    // quantised: the CPU rounds activations to 8 bits and Vulkan does not, which shows on so short a text
    test('software Vulkan is within 1 % of the CPU, 3 % with quantised weights', { skip: h.noSoftwareVulkan() }, async (context) => {
        for (const [file, limit] of [[h.model, 0.01], [variant('Q4_K_M'), 0.03]]) {
            const cpu = await final(context, file, 'CPU', 2, 128);
            const vulkan = await final(context, file, 'Vulkan0', 2, 128);
            console.log(`${path.basename(file)}: CPU ${cpu}, Vulkan ${vulkan}`);
            assert.ok(Math.abs(vulkan / cpu - 1) < limit, `${path.basename(file)}: CPU ${cpu}, Vulkan ${vulkan}`);
        }
    });
});

describe('quantised variants against f16', () => {
    // models/MODEL_CARD.md: perplexity, mean KL, share of equal top tokens; over the same text, all of it
    const card = {
        Q8_0: [23.29, 0.0033, 96.3],
        Q4_K_M: [24.88, 0.1466, 79.8],
        Q4_0: [26.74, 0.2743, 73.0],
        IQ4_XS: [24.95, 0.1934, 76.7],
        IQ3_XXS: [49.72, 1.1625, 50.2],
    };
    test('perplexity, KL and top token are those of the card', async (context) => {
        const base = path.join(h.temporaryFolder(context), 'f16.logits');
        await perplexity(context, h.model, 'CPU', -1, 512, finalEstimate, ['--kl-divergence-base', base]);
        for (const [type, [perplexityOfCard, klOfCard, topOfCard]] of Object.entries(card)) {
            assert.ok(fs.existsSync(variant(type)), `${variant(type)} is missing: build the target models`);
            const [found, kl, top] = await perplexity(context, variant(type), 'CPU', -1, 512, againstBase,
                ['--kl-divergence-base', base, '--kl-divergence']);
            console.log(`${type}: perplexity ${found}, mean KL ${kl}, same top token ${top} %`);
            assert.ok(Math.abs(found / perplexityOfCard - 1) < 0.01, `${type}: perplexity ${found}, the card says ${perplexityOfCard}`);
            assert.ok(Math.abs(kl / klOfCard - 1) < 0.05, `${type}: mean KL ${kl}, the card says ${klOfCard}`);
            assert.ok(Math.abs(top - topOfCard) < 1, `${type}: same top token ${top} %, the card says ${topOfCard}`);
        }
    });

    for (const type of ['Q8_0', 'Q4_K_M', 'Q4_0', 'IQ4_XS']) {
        test(`${type} knows the capital of France`, async (context) => {
            const server = await h.startServer(context, { model: variant(type), engine: ['-c', '512'] });
            assert.match((await h.chat(server, 'What is the capital of France?')).text, /Paris/);
        });
    }
});
