// Makes a LoRA adapter and a picture projector of fixed random numbers for a GGUF model, which need no download.
// Layout: ggml/docs/gguf.md of llama.cpp, version 3.
import fs from 'node:fs';

const sizes = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

// The architecture, and the dimensions of each tensor by its name.
function readHead(file) {
    const bytes = fs.readFileSync(file);
    let at = 8;
    const number = () => Number(bytes.readBigUInt64LE((at += 8) - 8));
    const word = () => bytes.readUInt32LE((at += 4) - 4);
    const text = () => {
        const length = number();
        return bytes.toString('utf8', at, (at += length));
    };
    const skip = (type) => {
        if (type === 8) return text();
        if (type !== 9) return void (at += sizes[type]);
        const inner = word();
        for (let left = number(); left > 0; left--) skip(inner);
    };
    const tensors = number();
    let architecture = '';
    for (let left = number(); left > 0; left--) {
        const key = text();
        const value = skip(word());
        if (key === 'general.architecture') architecture = value;
    }
    const dimensions = new Map();
    for (let i = 0; i < tensors; i++) {
        const name = text();
        const count = word();
        dimensions.set(name, Array.from({ length: count }, number));
        at += 12;
    }
    return { architecture, dimensions };
}

function randomNumbers(scale) {
    let seed = 7;
    return (count) => {
        const values = new Float32Array(count);
        for (let i = 0; i < count; i++) {
            seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
            values[i] = (seed / 2 ** 32 - 0.5) * scale;
        }
        return Buffer.from(values.buffer);
    };
}

const u32 = (value) => { const b = Buffer.alloc(4); b.writeUInt32LE(value); return b; };
const u64 = (value) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(value)); return b; };
const f32 = (value) => { const b = Buffer.alloc(4); b.writeFloatLE(value); return b; };
const string = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
// a value with its type before it
const text = (value) => Buffer.concat([u32(8), string(value)]);
const whole = (value) => Buffer.concat([u32(4), u32(value)]);
const real = (value) => Buffer.concat([u32(6), f32(value)]);
const truth = (value) => Buffer.concat([u32(7), Buffer.from([value ? 1 : 0])]);
const reals = (values) => Buffer.concat([u32(9), u32(6), u64(values.length), ...values.map(f32)]);

// tensors: {name, shape, data} of 32-bit numbers.
function writeGguf(file, pairs, tensors) {
    const head = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(pairs.length)];
    for (const [key, value] of pairs) head.push(string(key), value);
    const padded = (length) => Math.ceil(length / 32) * 32;
    let offset = 0;
    for (const { name, shape, data } of tensors) {
        head.push(string(name), u32(shape.length), ...shape.map(u64), u32(0), u64(offset));
        offset += padded(data.length);
    }
    const start = Buffer.concat(head);
    const parts = [start, Buffer.alloc(padded(start.length) - start.length)];
    for (const { data } of tensors) parts.push(data, Buffer.alloc(padded(data.length) - data.length));
    fs.writeFileSync(file, Buffer.concat(parts));
}

export function writeLora(file, model, rank = 4) {
    const { architecture, dimensions } = readHead(model);
    const random = randomNumbers(0.3);
    const tensors = [];
    for (const [name, [input, output]] of dimensions) {
        if (!/^blk\.\d+\.attn_output\.weight$/.test(name)) continue;
        tensors.push({ name: `${name}.lora_a`, shape: [input, rank], data: random(input * rank) });
        tensors.push({ name: `${name}.lora_b`, shape: [rank, output], data: random(rank * output) });
    }
    writeGguf(file, [['general.architecture', text(architecture)], ['general.type', text('adapter')],
        ['adapter.type', text('lora')], ['adapter.lora.alpha', real(rank)]], tensors);
}

// A vision transformer over 4 x 4 patches with the projector of LLaVA, which asks for no special tokens: 16 tokens a
// picture. Of its two layers llama.cpp uses all but the last.
export function writeProjector(file, model) {
    const { dimensions } = readHead(model);
    const [width] = dimensions.get('token_embd.weight');
    const [n, ff, patch, image] = [64, 128, 16, 64];
    const random = randomNumbers(0.2);
    const tensors = [];
    const add = (name, ...shape) => tensors.push({ name, shape, data: random(shape.reduce((a, b) => a * b)) });
    add('v.patch_embd.weight', patch, patch, 3, n);
    add('v.patch_embd.bias', n);
    add('v.position_embd.weight', n, (image / patch) ** 2);
    for (const layer of ['v.blk.0', 'v.blk.1']) {
        for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_out']) {
            add(`${layer}.${name}.weight`, n, n);
            add(`${layer}.${name}.bias`, n);
        }
        for (const name of ['ln1', 'ln2']) {
            add(`${layer}.${name}.weight`, n);
            add(`${layer}.${name}.bias`, n);
        }
        add(`${layer}.ffn_up.weight`, n, ff);
        add(`${layer}.ffn_up.bias`, ff);
        add(`${layer}.ffn_down.weight`, ff, n);
        add(`${layer}.ffn_down.bias`, n);
    }
    add('mm.0.weight', n, width);
    add('mm.0.bias', width);
    add('mm.2.weight', width, width);
    add('mm.2.bias', width);
    writeGguf(file, [['general.architecture', text('clip')], ['clip.has_vision_encoder', truth(true)],
        ['clip.projector_type', text('mlp')], ['clip.use_gelu', truth(true)],
        ['clip.vision.image_size', whole(image)], ['clip.vision.patch_size', whole(patch)],
        ['clip.vision.embedding_length', whole(n)],
        ['clip.vision.feed_forward_length', whole(ff)], ['clip.vision.block_count', whole(2)],
        ['clip.vision.projection_dim', whole(width)], ['clip.vision.attention.head_count', whole(4)],
        ['clip.vision.attention.layer_norm_epsilon', real(1e-6)],
        ['clip.vision.image_mean', reals([0.5, 0.5, 0.5])], ['clip.vision.image_std', reals([0.5, 0.5, 0.5])]], tensors);
}
